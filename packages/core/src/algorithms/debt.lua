-- A debt in time, the state of gcra and leaky-bucket: the moment at which it is paid. '<d' in us, '<dI4I4' with a
-- remainder in steps and their unit, or '<dI4I4d' with the time to fill of the policy that stored it too, where that is
-- longer than the window.
-- Extra numbers: steps per unit, steps per us, unit of the steps, time to fill in us if longer than the window or 0.

-- How far ahead of now the debt is paid: whole us, and steps; and the time to fill that was stored with it.
local function read_debt(raw, policy)
  local window, full, per_us = policy[4], policy[5] * policy[6], policy[7]
  if not raw or (#raw ~= 8 and #raw ~= 16 and #raw ~= 24) then
    return 0, 0, 0
  end
  local paid, rest, unit, long = unpack('<d', raw), 0, policy[8], 0
  if #raw == 24 then
    paid, rest, unit, long = unpack('<dI4I4d', raw)
    long = long <= 3155761000000000 and long or 0 -- no policy takes longer: 100 years, and 1 us a unit of rounding
  elseif #raw == 16 then
    paid, rest, unit = unpack('<dI4I4', raw)
  end
  if unit ~= policy[8] and rest > 0 then
    paid, rest = paid + 1, 0
  end
  local us = paid - now
  local over = us - window
  -- A debt beyond what this policy could store may be that of a larger burst, and stands.
  local within = over * per_us + rest <= full or over < long
  if us >= 0 and us % 1 == 0 and rest < per_us and within then
    return us, rest, long
  end
  return 0, 0, 0
end

local function write_debt(ahead, steps, long, policy)
  if long > 0 then
    return pack('<dI4I4d', now + ahead, steps, policy[8], long)
  elseif steps > 0 then
    return pack('<dI4I4', now + ahead, steps, policy[8])
  end
  return pack('<d', now + ahead)
end

-- allowed, remaining, retry, replenish, reset, the debt in steps, and the state to store.
local function step_debt(raw, cost, policy)
  local burst, per_unit, per_us = policy[5], policy[6], policy[7]
  local full = burst * per_unit
  local ahead, steps = read_debt(raw, policy)
  local debt = min(ahead * per_us + steps, full)
  local need = cost * per_unit
  local allowed = debt + need <= full
  local state
  if allowed and cost > 0 then
    debt = debt + need
    steps = debt % per_us
    ahead = (debt - steps) / per_us
    state = write_debt(ahead, steps, policy[9], policy)
  end
  local remaining = floor((full - debt) / per_unit)
  local retry, replenish = 0, 0
  if not allowed then
    retry = cost > burst and -1 or ahead - floor((full - need - steps) / per_us)
  end
  if remaining < burst then
    replenish = ahead - floor((full - (remaining + 1) * per_unit - steps) / per_us)
  end
  return allowed, remaining, retry, replenish, steps > 0 and ahead + 1 or ahead, debt, state
end

-- The state once units of a charge are given back, of what it still owes: the oldest debt is paid first. With `last`,
-- for a queue, only if nobody came since. Nothing where nothing is owed.
local function refund_debt(raw, units, policy, charged_until, last)
  local per_unit, per_us = policy[6], policy[7]
  local ahead, steps, long = read_debt(raw, policy)
  local left = charged_until - now
  if left <= 0 or ahead + steps == 0 or last and left ~= (steps > 0 and ahead + 1 or ahead) then
    return nil
  end
  local owed = min(left * per_us, units * per_unit)
  -- In us and steps apart: the debt of a larger burst may pass 2^53 steps.
  ahead, steps = ahead - floor(owed / per_us), steps - owed % per_us
  if steps < 0 then
    ahead, steps = ahead - 1, steps + per_us
  end
  if ahead < 0 then
    ahead, steps = 0, 0
  end
  return write_debt(ahead, steps, long, policy)
end
