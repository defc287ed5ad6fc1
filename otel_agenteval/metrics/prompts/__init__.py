"""What judges are asked, a module for each family of metrics: texts and nothing else, put together by :mod:`..lib.prompts`."""
