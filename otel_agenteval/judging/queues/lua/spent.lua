local function used(key, oldest)
  local sum, first = 0, nil
  local found = redis.call('HGETALL', key)
  for i = 1, #found, 2 do
    local slot = tonumber(found[i])
    if slot < oldest then
      redis.call('HDEL', key, found[i])
    else
      sum = sum + tonumber(found[i + 1])
      if not first or slot < first then first = slot end
    end
  end
  return sum, first
end
local function add(key, slot, amount, window)
  redis.call('HINCRBYFLOAT', key, slot, amount)
  redis.call('EXPIRE', key, math.ceil(window * 2))
end
