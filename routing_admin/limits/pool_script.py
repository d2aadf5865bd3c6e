"""The programs that Redis runs on pools: an exchange of `core.limits.ledger.book`, and the end of a process.

A pool is a hash: `total` is what it drew of the rows, `outside` what all drew beside it, `spent` what was used by
processes that are gone; `h:`, `c:` and `u:` before a process's name are what it holds, what of that is committed, and
until when by the clock of Redis, in milliseconds. `wat` and `wby` say when who asked in vain.
"""

from __future__ import annotations

from routing_admin.core.limits.shares import GRANT_DIVISOR
from routing_admin.platform.redis.link import Script

OVER, LOST = "over", "lost"
"""What it says instead: the epoch is another one; Redis has dropped a pool that a process holds of."""

COMMON = """
local function text(number) return string.format('%.0f', number) end

local function read(key)
  local pool, flat = {}, redis.call('HGETALL', key)
  for i = 1, #flat, 2 do pool[flat[i]] = flat[i] == 'wby' and flat[i + 1] or tonumber(flat[i + 1]) end
  return pool
end

local function forget(key, pool, process)
  redis.call('HDEL', key, 'h:' .. process, 'c:' .. process, 'u:' .. process)
  pool['h:' .. process], pool['c:' .. process], pool['u:' .. process] = nil, nil, nil
end
"""

EXCHANGE = Script(
    COMMON
    + """
local FIELDS = 13
local epoch, me, lease, wanted, last = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('GET', KEYS[1]) ~= epoch then return '__OVER__' end

local function exchange(key, at)
  local a = {}
  for i = 1, FIELDS do a[i] = tonumber(ARGV[at + i]) end
  local enters, carried, grown, outside, seconds, ends = a[1] == 1, a[2], a[3], a[4], a[5], a[6] == 1
  local limit, granted, committed, reported, give, want, least = a[7], a[8], a[9], a[10], a[11], a[12], a[13]
  local pool = read(key)
  if not pool.total and not enters then return nil end
  local total, spent, others = pool.total or 0, pool.spent or 0, 0
  for field, till in pairs(pool) do
    if string.sub(field, 1, 2) == 'u:' then
      local name = string.sub(field, 3)
      if till <= now then
        if ends then spent = spent + pool['c:' .. name] end
        forget(key, pool, name)
      end
    end
  end
  for field, held in pairs(pool) do
    if string.sub(field, 1, 2) == 'h:' and field ~= 'h:' .. me then others = others + held end
  end
  total = total + grown
  local held = pool['h:' .. me]
  if enters then
    total, held = total + carried, carried
  elseif held == nil then
    held = ends and math.min(reported, granted) or 0
    spent = spent - held
  end
  held = held - math.max(0, math.min(give, held - committed))
  held = held + math.max(0, committed - held)
  if outside >= 0 then pool.outside = outside end
  local drawn = pool.outside + spent + others + held
  local left, grant = math.min(total - spent - others - held, limit - drawn), 0
  if want > 0 and left >= math.max(least, 1) then
    grant = math.min(left, math.max(want, math.floor(left / __PARTS__)))
  end
  local demand = pool.wat ~= nil and now - pool.wat < wanted and pool.wby ~= me
  if want > 0 and grant == 0 and last and not demand then redis.call('HSET', key, 'wat', text(now), 'wby', me) end
  held = held + grant
  redis.call('HSET', key, 'total', text(total), 'outside', text(pool.outside), 'spent', text(spent),
    'h:' .. me, text(held), 'c:' .. me, text(committed), 'u:' .. me, text(now + lease))
  redis.call('EXPIRE', key, seconds)
  return {held, drawn + grant, grant, demand and 1 or 0}
end

local booked = {}
for i = 2, #KEYS do
  local booking = exchange(KEYS[i], 5 + (i - 2) * FIELDS)
  if not booking then return '__LOST__' end
  booked[i - 1] = booking
end
return booked
""".replace("__OVER__", OVER)
    .replace("__LOST__", LOST)
    .replace("__PARTS__", str(GRANT_DIVISOR))
)
"""Keys: the epoch, the pools. Arguments: the epoch, the process, lease and demand in milliseconds, whether it is the
last word; then of each pool what `exchange` reads."""

LEAVE = Script(
    COMMON
    + """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
for i = 2, #KEYS do
  local pool = read(KEYS[i])
  if pool['h:' .. ARGV[2]] then
    if ARGV[i + 1] == '1' then redis.call('HSET', KEYS[i], 'spent', text((pool.spent or 0) + pool['c:' .. ARGV[2]])) end
    forget(KEYS[i], pool, ARGV[2])
  end
end
return 1
"""
)
"""Keys: the epoch, the pools. Arguments: the epoch, the process, then of each pool whether what is used stays used."""

PROLONG = Script(
    """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
"""
)
"""Lets the epoch go on for so many milliseconds, where it is still that one."""
