"""Parts that need packages of their own. Each is an app, or belongs to one."""
