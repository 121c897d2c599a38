import { type Refusal, writeHeaders } from '@sluice/core'

/** Headers, as `new Headers()` takes them. */
export type HeaderFields = NonNullable<ConstructorParameters<typeof Headers>[0]>

/**
 * The response with the headers of all limiters that the request has passed: itself, or a copy where it cannot be
 * written to (what `fetch` gave, `Response.redirect`) or has no body, so that it may be one for many requests.
 */
export function tell(request: Request, response: Response): Response {
  let told = response
  let fixed = false
  const copy = (): void => {
    const copied = copyOf(response)
    fixed = copied === undefined
    told = copied ?? response
  }
  writeHeaders(request, {
    responseHeader: (name) => told.headers.get(name) ?? undefined,
    setResponseHeader(name, value) {
      if (told === response && !fixed && response.body === null) copy()
      if (fixed) return
      try {
        told.headers.set(name, value)
      } catch {
        copy()
        if (!fixed) told.headers.set(name, value)
      }
    },
  })
  return told
}

/** Undefined for what no copy can stand for, such as an upgrade to a WebSocket in Deno. */
function copyOf(response: Response): Response | undefined {
  try {
    return new Response(response.body, response)
  } catch {
    return undefined
  }
}

/** The reply to a denied request. */
export function replyOf(
  { status, contentType, body }: Refusal,
  head: boolean,
  others?: HeaderFields,
): Response {
  const headers = new Headers(others)
  headers.set('Content-Type', contentType)
  headers.set('Content-Length', String(new TextEncoder().encode(body).length))
  return new Response(head ? null : body, { status, headers })
}

/** The response, whose body tells when it was read to its end, or given up. */
export function watch(response: Response, ended: (finished: boolean) => void): Response {
  if (!response.body) {
    ended(true)
    return response
  }
  const reader = response.body.getReader()
  const body = new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) return controller.enqueue(value)
          ended(true)
          controller.close()
        } catch (error) {
          ended(false)
          controller.error(error)
        }
      },
      cancel(reason) {
        ended(false)
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, response)
}
