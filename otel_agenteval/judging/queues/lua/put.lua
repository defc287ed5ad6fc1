local max_bytes, left = tonumber(ARGV[3]), {}
redis.call('HINCRBY', totals, 'jobs', 0)  -- if memory is full, the server rejects only a script's first write
redis.call('ZREMRANGEBYSCORE', done, '-inf', text(now - tonumber(ARGV[4])))
redis.call('ZREMRANGEBYRANK', done, 0, -tonumber(ARGV[5]) - 1)
promote()
local function fits(level, size)
  local short = number('bytes') + size - max_bytes
  if short <= 0 then return true end
  local could = 0
  for lower = 0, level - 1 do could = could + number('free' .. lower) end
  if could < short then return false end
  for lower = 0, level - 1 do
    while short > 0 do
      local rested = redis.call('ZRANGEBYSCORE', idle, text(lower * STEP), '(' .. text((lower + 1) * STEP), 'LIMIT', 0, 1)[1]
      local fresh = redis.call('XRANGE', stream(lower), string.format('%.0f-1', number('read' .. lower)), '+', 'COUNT', 1)[1]
      local out = rested or (fresh and fresh[2][2])  -- jobs that were claimed before are older
      if not out then break end
      local job = read(out)
      left[#left + 1] = {job.id, payload(job), job.priority, tostring(job.attempts)}
      remove(job, rested and true or false)
      short = short - job.size
    end
  end
  return true
end
for i = 6, #ARGV, 5 do
  local id, body, size, attempts = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4])
  local level = math.max(0, math.min(tonumber(ARGV[i + 2]), LEVELS - 1))
  if redis.call('HEXISTS', jobs, id) == 0 and not redis.call('ZSCORE', done, id) then
    if not fits(level, size) then
      left[#left + 1] = {id}
    else
      if redis.call('EXISTS', stream(level)) == 0 then redis.call('XGROUP', 'CREATE', stream(level), group, '0', 'MKSTREAM') end
      local job = {id = id, level = level, seq = redis.call('HINCRBY', totals, 'seq', 1), attempts = attempts, size = size,
                   claimed = false, priority = ARGV[i + 2]}
      redis.call('XADD', stream(level), entry(job), 'id', id, 'job', body)
      write(job)
      redis.call('HINCRBY', totals, 'jobs', 1)
      redis.call('HINCRBY', totals, 'bytes', size)
      redis.call('HINCRBY', totals, 'new' .. level, 1)
      free(level, size)
    end
  end
end
return left
