-- floor(a * b / c), exact past 2^53 too: long division in base 128 (a < 2^35, b and c <= 400 days).
local function muldiv(a, b, c)
  local product = a * b
  if product < 9007199254740992 then
    local quotient = product / c
    return quotient - quotient % 1
  end
  local quotient, rest, place = 0, 0, 268435456
  while place >= 1 do
    local digits = a / place
    local part = rest * 128 + (digits - digits % 1) % 128 * b
    local digit = part / c
    quotient = quotient * 128 + digit - digit % 1
    rest = part % c
    place = place / 128
  end
  return quotient
end
