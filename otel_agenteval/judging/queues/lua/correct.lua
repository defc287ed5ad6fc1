for i, key in ipairs(KEYS) do add(key, ARGV[3 * i - 2], ARGV[3 * i], tonumber(ARGV[3 * i - 1])) end
