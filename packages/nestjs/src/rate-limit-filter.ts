import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common'
import { RateLimitException } from './exceptions.js'
import { type AnyResponse, headersSent } from './exchange.js'

/** A response of Express, or a reply of Fastify. */
interface Response extends AnyResponse {
  writeHead(status: number, headers: Readonly<Record<string, string | number>>): { end(body: string): void }
  code(status: number): { type(contentType: string): { send(body: Buffer): void } }
  hijack(): void
}

/** Answers a refused request with the reply of the exception, byte for byte. `RateLimitModule` brings it. */
@Catch(RateLimitException)
export class RateLimitFilter implements ExceptionFilter<RateLimitException> {
  catch(exception: RateLimitException, host: ArgumentsHost): void {
    // GraphQL shows the error itself.
    if (host.getType() !== 'http') throw exception
    const response = host.switchToHttp().getResponse<Response>()
    const { status, contentType, body } = exception.refusal
    if (response.raw) {
      if (headersSent(response)) response.hijack()
      // As bytes, since Fastify adds a charset to JSON text.
      else response.code(status).type(contentType).send(Buffer.from(body))
    } else if (!headersSent(response)) {
      // Not `send`, which would add an ETag.
      const length = Buffer.byteLength(body)
      response.writeHead(status, { 'Content-Type': contentType, 'Content-Length': length }).end(body)
    }
  }
}
