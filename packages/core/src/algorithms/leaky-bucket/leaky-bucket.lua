-- leaky-bucket (lb)
-- State: a debt in time, see debt.lua: the first free departure.
if charged_at then
  return refund_debt(raw, cost, policy, charged_at, charged_reset, true)
end
local allowed, remaining, retry, replenish, reset, debt, state = step_debt(raw, cost, policy)
local delay = state and ceil((debt - policy[6]) / policy[7]) or 0
return allowed, remaining, retry, replenish, reset, delay, state
