local n, lease, consumer, token, claimed = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6], {}
promote()
while #claimed < n do
  local first = redis.call('ZRANGE', again, 0, 0)[1]
  local job = first and read(first)
  local level = LEVELS - 1
  while level >= 0 and number('new' .. level) <= 0 do level = level - 1 end
  local body
  if job and job.level >= level then
    redis.call('ZREM', again, job.id)
    redis.call('ZREM', idle, job.id)
    body = payload(job)
    redis.call('XCLAIM', stream(job.level), group, consumer, 0, entry(job), 'RETRYCOUNT', job.attempts + 1, 'FORCE', 'JUSTID')
  elseif level >= 0 then
    local found = redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', 1, 'STREAMS', stream(level), '>')
    if not found then
      redis.call('HSET', totals, 'new' .. level, 0)
    else
      local item = found[1][2][1]
      job, body = read(item[2][2]), item[2][4]
      redis.call('HINCRBY', totals, 'new' .. level, -1)
      redis.call('HSET', totals, 'read' .. level, string.match(item[1], '^%d+'))
    end
  else
    break
  end
  if body then
    job.claimed, job.attempts = true, job.attempts + 1
    write(job)
    free(job.level, -job.size)
    redis.call('ZADD', wait, text(now + lease), job.id)
    redis.call('HSET', tokens, job.id, token)
    claimed[#claimed + 1] = {job.id, body, job.priority, tostring(job.attempts)}
  end
end
if #claimed > 0 then keep_tokens(lease) end
return claimed
