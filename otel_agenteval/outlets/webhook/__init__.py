"""Messages to people about scores that somebody has to look at: to Slack, Teams, PagerDuty, or any URL.

:mod:`.notices` decides what is worth a message and gathers it, :mod:`.formats` says it as each service wants it, :mod:`.outlet` sends it.
"""
