"""MySQL 8 as far as a MariaDB can stand for it.

Django words everything as for MySQL 8, in the mode that MySQL 8 starts in, and what that server
refuses though MariaDB runs it is refused here.
"""
