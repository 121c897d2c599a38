-- gcra (gc)
-- State: a debt in time, see debt.lua.
local is_queue = false
--@include debt.lua
