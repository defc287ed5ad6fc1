local wait, at = 0, tonumber(ARGV[1])
for i, key in ipairs(KEYS) do
  local slot, window, amount = tonumber(ARGV[5 * i - 3]), tonumber(ARGV[5 * i - 2]), tonumber(ARGV[5 * i - 1])
  local limit, below = tonumber(ARGV[5 * i]), tonumber(ARGV[5 * i + 1])
  local sum, first = used(key, slot - SLOTS)
  if not (sum < below and (sum <= 0 or sum + amount <= limit)) then
    wait = math.max(wait, ((first or slot) + SLOTS + 1) * (window / SLOTS) - at)
  end
end
if wait == 0 then
  for i, key in ipairs(KEYS) do add(key, ARGV[5 * i - 3], ARGV[5 * i - 1], tonumber(ARGV[5 * i - 2])) end
end
return string.format('%.17g', wait)
