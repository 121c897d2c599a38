-- leaky-bucket (lb)
-- State: a debt in time, see debt.lua: the first free departure.
if charged_until then
  return refund_debt(raw, cost, policy, charged_until, true)
end
local allowed, remaining, retry, replenish, reset, debt, state = step_debt(raw, cost, policy)
-- It leaves with the last of the departures that it takes.
local delay = state and ceil((debt - policy[6]) / policy[7]) or 0
return allowed, remaining, retry, replenish, reset, delay, state
