local job = read(ARGV[3])
if not job or not owns(job, ARGV[4]) then return 0 end
local due = ARGV[2] == '' and now + tonumber(ARGV[5]) or tonumber(ARGV[5])
redis.call('HDEL', tokens, job.id)
if ARGV[6] == '0' then job.attempts = job.attempts - 1 end
if job.claimed then
  rest(job, due)
else
  write(job)
  redis.call('ZREM', again, job.id)
  redis.call('ZADD', wait, text(due), job.id)
end
return 1
