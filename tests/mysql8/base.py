"""The backend: Django's own for MySQL and MariaDB, told that it speaks to MySQL."""

from __future__ import annotations

from django.db import ProgrammingError
from django.db.backends.mysql import base, features
from django.utils.functional import cached_property
from MySQLdb.cursors import RE_INSERT_VALUES

from .dialect import refused

VERSION = "8.0.36"
MODE = (
    "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
)


class Features(features.DatabaseFeatures):
    #: MySQL sees that the other columns follow from the key; MariaDB in this mode does not.
    allows_group_by_selected_pks = False


class Cursor(base.CursorWrapper):
    def execute(self, query, args=None):
        if why := refused(query):
            raise ProgrammingError(f"MySQL 8 would not run this: {why}.")
        return super().execute(query, args)

    def executemany(self, query, args):
        if why := refused(query):
            raise ProgrammingError(f"MySQL 8 would not run this: {why}.")
        if not RE_INSERT_VALUES.match(query):
            raise ProgrammingError("mysqlclient would send these rows one by one.")
        return super().executemany(query, args)


class DatabaseWrapper(base.DatabaseWrapper):
    features_class = Features

    @cached_property
    def mysql_server_data(self):
        return {**super().mysql_server_data, "version": VERSION}

    def get_connection_params(self):
        return {"sql_mode": MODE, **super().get_connection_params()}

    def create_cursor(self, name=None):
        return Cursor(super().create_cursor(name).cursor)
