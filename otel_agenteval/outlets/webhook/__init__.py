"""Outlet that sends messages about scores that need attention to Slack, Teams, PagerDuty or any URL.

:mod:`.notices` collects notices, :mod:`.formats` renders them for each service, and :mod:`.outlet` sends them.
"""
