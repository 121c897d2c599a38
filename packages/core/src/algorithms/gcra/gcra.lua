-- gcra (gc)
-- State: a debt in time, see debt.lua.
if charged_until then
  return refund_debt(raw, cost, policy, charged_until)
end
local allowed, remaining, retry, replenish, reset, _, state = step_debt(raw, cost, policy)
return allowed, remaining, retry, replenish, reset, 0, state
