local lost = {}
for i = 4, #ARGV, 4 do
  local job = read(ARGV[i])
  if job and owns(job, ARGV[i + 1]) then
    remove(job, true)
    redis.call('ZADD', done, text(now), job.id)
    if ARGV[i + 2] == '1' then redis.call('XADD', dead, 'MAXLEN', '~', ARGV[3], '*', 'id', job.id, 'reason', ARGV[i + 3]) end
  else
    lost[#lost + 1] = ARGV[i]
  end
end
return lost
