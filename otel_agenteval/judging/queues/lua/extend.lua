local lease, lost = tonumber(ARGV[3]), {}
for i = 4, #ARGV, 2 do
  local job = read(ARGV[i])
  if job and owns(job, ARGV[i + 1]) then
    if not job.claimed then  -- its lease ended, and no other process claimed it
      job.claimed = true
      write(job)
      free(job.level, -job.size)
      redis.call('ZREM', again, job.id)
      redis.call('ZREM', idle, job.id)
    end
    redis.call('ZADD', wait, text(now + lease), job.id)
  else
    lost[#lost + 1] = ARGV[i]
  end
end
keep_tokens(lease)
return lost
