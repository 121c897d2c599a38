import { checkWhole, SluiceError, show } from '@sluice/core'

/** Tells the address of a request's client, from what the runtime hands to a handler. */
export type AddressFunction<Rest extends unknown[] = unknown[]> = (
  request: Request,
  ...rest: Rest
) => string | undefined

/** What runtimes for servers give a handler beside the request: nothing that a client can write. */
interface ConnectionInfo {
  /** Of `Deno.serve`. */
  readonly remoteAddr?: { readonly hostname?: string }
  /** Of `@hono/node-server`. */
  readonly incoming?: NodeRequest
  /** Of `@whatwg-node/server`. */
  readonly req?: NodeRequest
  /** Of `Bun.serve`. */
  requestIP?(request: Request): { readonly address: string } | null
}

interface NodeRequest {
  readonly socket?: { readonly remoteAddress?: string }
}

/** The address that the runtime itself knows; no header but the one that Cloudflare sets anew on every request. */
export function runtimeAddress(request: Request, ...rest: unknown[]): string | undefined {
  if (isOnCloudflare(request)) return request.headers.get('cf-connecting-ip') ?? undefined
  const info = rest[0] as ConnectionInfo | undefined
  return (
    info?.remoteAddr?.hostname ??
    info?.requestIP?.(request)?.address ??
    (info?.incoming ?? info?.req)?.socket?.remoteAddress
  )
}

/** Its network, not just its runtime, which anyone can run: there clients could write the header. */
export function isOnCloudflare(request: Request): boolean {
  return (
    (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent === 'Cloudflare-Workers' &&
    (request as { cf?: unknown }).cf !== undefined
  )
}

/**
 * For the option `address` behind proxies that add the address they see to the end of `X-Forwarded-For`: the one that
 * the outermost of them saw. What clients write in front of that does not count; a request that came around a proxy has
 * no address.
 * @param proxies how many there are, 1 to 32
 */
export function forwardedFor(proxies: number): (request: Request) => string | undefined {
  checkWhole('forwardedFor', proxies, 1, 32)
  const address = (request: Request): string | undefined => forwardedOf(request).at(-proxies) || undefined
  counted.add(address)
  return address
}

/** What {@link forwardedFor} made. */
const counted = new WeakSet<object>()

/** Whether a function of the user's own finds the end of the list that a client can write, and others have added to it. */
export function trustsClient(find: AddressFunction<never>, request: Request, address: unknown): boolean {
  const addresses = forwardedOf(request)
  return !counted.has(find) && addresses.length > 1 && addresses[0] === address
}

function forwardedOf(request: Request): string[] {
  return request.headers.get('x-forwarded-for')?.split(/\s*,\s*/) ?? []
}

/** @throws SluiceError `SLUICE_NO_ADDRESS` rather than to count all such requests as one client */
export function checkAddress(limiter: string, address: unknown): string {
  if (typeof address === 'string' && address !== '') return address
  throw new SluiceError(
    'SLUICE_NO_ADDRESS',
    `Limiter ${show(limiter)} is to count a request by its address, which is ${show(address)}. Expected one from the runtime, from the option \`address\`, such as \`forwardedFor(1)\` behind one proxy, or another \`key\`.`,
  )
}
