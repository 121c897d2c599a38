-- A debt in time, the state of gcra and leaky-bucket: the moment at which it is paid. '<d' in us, '<dI4I4' with a
-- remainder in steps and their unit, or '<dI4I4d' with the time to fill of the policy that stored it too, where that is
-- longer than the window.
-- Extra numbers: steps per unit, steps per us, unit of the steps, time to fill in us if longer than the window or 0.

-- How far ahead of now the debt is paid: whole us, and steps.
local function read_debt(raw, policy)
  local window, full, per_us = policy[4], policy[5] * policy[6], policy[7]
  if not raw or (#raw ~= 8 and #raw ~= 16 and #raw ~= 24) then
    return 0, 0
  end
  local paid, rest, unit, long = unpack('<d', raw), 0, policy[8], 0
  if #raw == 24 then
    paid, rest, unit, long = unpack('<dI4I4d', raw)
  elseif #raw == 16 then
    paid, rest, unit = unpack('<dI4I4', raw)
  end
  if unit ~= policy[8] and rest > 0 then
    paid, rest = paid + 1, 0
  end
  local us = paid - now
  local over = us - window
  -- A debt beyond what this policy could store may be that of a larger burst (filled within 100 years), and stands.
  local within = over * per_us + rest <= full or over < min(long, 3155760000000000)
  if us >= 0 and us % 1 == 0 and rest < per_us and within then
    return us, rest
  end
  return 0, 0
end

local function write_debt(debt, policy)
  local steps = debt % policy[7]
  local paid, long = now + (debt - steps) / policy[7], policy[9]
  if long > 0 then
    return pack('<dI4I4d', paid, steps, policy[8], long)
  elseif steps > 0 then
    return pack('<dI4I4', paid, steps, policy[8])
  end
  return pack('<d', paid)
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
    state = write_debt(debt, policy)
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

-- The state once units of a charge are given back, of what it still owes; `last` for a queue, where only the last
-- place can be. Nothing where nothing is owed.
local function refund_debt(raw, units, policy, charged_at, charged_reset, last)
  local per_unit, per_us = policy[6], policy[7]
  local ahead, steps = read_debt(raw, policy)
  local paid = now + ahead + (steps > 0 and 1 or 0)
  local owed = min((charged_at + charged_reset - now) * per_us, units * per_unit)
  if owed <= 0 or last and paid ~= charged_at + charged_reset then
    return nil
  end
  return write_debt(max(0, ahead * per_us + steps - owed), policy)
end
