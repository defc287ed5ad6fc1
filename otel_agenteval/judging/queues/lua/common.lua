redis.replicate_commands()
local jobs, wait, again, idle, done, dead, totals = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local function stream(level) return KEYS[8 + level] end
local tokens = KEYS[8 + LEVELS]
local group = ARGV[1]
local now
if ARGV[2] == '' then
  local t = redis.call('TIME')
  now = tonumber(t[1]) + tonumber(t[2]) / 1e6
else
  now = tonumber(ARGV[2])
end
local STEP = 2 ^ 45
local function text(x) return string.format('%.17g', x) end
local function read(id)
  local found = redis.call('HGET', jobs, id)
  if not found then return nil end
  local level, seq, attempts, size, claimed, priority = string.match(found, '^(%d+) (%d+) (%d+) (%d+) (%d) (-?%d+)$')
  return {id = id, level = tonumber(level), seq = tonumber(seq), attempts = tonumber(attempts), size = tonumber(size),
          claimed = claimed == '1', priority = priority}
end
local function write(job)
  redis.call('HSET', jobs, job.id, string.format('%d %.0f %d %d %d %s', job.level, job.seq, job.attempts, job.size,
                                                 job.claimed and 1 or 0, job.priority))
end
local function entry(job) return string.format('%.0f-0', job.seq) end
local function payload(job)
  local found = redis.call('XRANGE', stream(job.level), entry(job), entry(job))
  return found[1] and found[1][2][4] or ''
end
local function free(level, bytes) redis.call('HINCRBY', totals, 'free' .. level, bytes) end
local function owns(job, fence)
  local token = redis.call('HGET', tokens, job.id)
  return token and string.sub(token, 1, #fence) == fence
end
local function keep_tokens(lease) redis.call('EXPIRE', tokens, math.ceil(math.max(REMEMBERED, 4 * lease))) end
local function rest(job, due)
  job.claimed = false
  write(job)
  free(job.level, job.size)
  redis.call('ZADD', idle, text(job.level * STEP + job.seq), job.id)
  redis.call('ZADD', wait, text(due), job.id)
end
local function promote()
  while true do
    local due = redis.call('ZRANGEBYSCORE', wait, '-inf', text(now), 'LIMIT', 0, 500)
    if #due == 0 then return end
    for _, id in ipairs(due) do
      redis.call('ZREM', wait, id)
      local job = read(id)
      if job then
        if job.claimed then
          job.claimed = false
          write(job)
          free(job.level, job.size)
          redis.call('ZADD', idle, text(job.level * STEP + job.seq), id)
        end
        redis.call('ZADD', again, text((LEVELS - job.level) * STEP + job.seq), id)
      end
    end
  end
end
local function remove(job, delivered)
  redis.call('HDEL', jobs, job.id)
  redis.call('HDEL', tokens, job.id)
  redis.call('HINCRBY', totals, 'jobs', -1)
  redis.call('HINCRBY', totals, 'bytes', -job.size)
  if not job.claimed then free(job.level, -job.size) end
  if delivered then
    redis.call('ZREM', wait, job.id)
    redis.call('ZREM', again, job.id)
    redis.call('ZREM', idle, job.id)
    redis.call('XACK', stream(job.level), group, entry(job))
  else
    redis.call('HINCRBY', totals, 'new' .. job.level, -1)
  end
  redis.call('XDEL', stream(job.level), entry(job))
end
local function number(field) return tonumber(redis.call('HGET', totals, field) or '0') end
