/**
 * Makes an `onEvent` listener that posts a message when the store of its limiters goes down, and one when it is up
 * again. Give one listener to all of them: each change is then told once. The body is what Slack and its like take.
 */
export function alertTo(url) {
  let last = Promise.resolve()
  return (event) => {
    const text = textOf(event)
    // One after the other, so that they arrive in order; requests do not wait for them.
    if (text) last = last.then(() => post(url, text))
  }
}

function textOf(event) {
  if (event.type === 'store-down') {
    return `The store of ${event.limiters.join(', ')} is down: ${event.error.message}`
  }
  if (event.type === 'store-up') {
    const { limiters, downMs, degraded } = event
    const seconds = (downMs / 1000).toFixed(1)
    return `The store of ${limiters.join(', ')} is up again after ${seconds} s; ${degraded} requests were decided without it`
  }
  return undefined
}

async function post(url, text) {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ text }),
      signal: AbortSignal.timeout(5000),
    })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`status ${response.status}`)
  } catch (error) {
    // The address is often a secret, and stays out of the log.
    console.error(`This alert could not be sent (${error.message}): ${text}`)
  }
}
