"""The statements that tests in the dialect of MySQL 8 refuse."""

from __future__ import annotations

import pytest

from .mysql8.dialect import refused


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO `t` (`a`) VALUES (%s) RETURNING `t`.`id`",
        "INSERT INTO `t` (`a`) VALUES (%s) ON DUPLICATE KEY UPDATE `a` = VALUE(`a`)",
        "ALTER TABLE `t` DROP COLUMN IF EXISTS `a`",
        "UPDATE `t` SET `a` = 1 WHERE `id` IN (SELECT U0.`id` FROM `t` U0)",
        "DELETE FROM `t` WHERE `id` IN (SELECT U0.`id` FROM `u` U0 JOIN `t` ON 1)",
    ],
)
def test_only_mariadb_runs(sql):
    assert refused(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO `t` (`a`) VALUES (%s) ON DUPLICATE KEY UPDATE `a` = `a`",
        "UPDATE `t` SET `a` = 1 WHERE `id` IN (SELECT U0.`id` FROM `u` U0)",
        "DELETE FROM `t` WHERE `id` IN (SELECT * FROM (SELECT U0.`id` FROM `t` U0) subquery)",
        "SELECT `a` FROM `t` WHERE `id` IN (SELECT U0.`id` FROM `t` U0)",
    ],
)
def test_mysql_runs(sql):
    assert not refused(sql)
