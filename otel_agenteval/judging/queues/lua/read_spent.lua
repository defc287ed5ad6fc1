return string.format('%.17g', (used(KEYS[1], tonumber(ARGV[1]))))
