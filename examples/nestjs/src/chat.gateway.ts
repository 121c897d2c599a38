import { UseGuards } from '@nestjs/common'
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets'
import { RateLimit, RateLimitGuard } from '@sluice/nestjs'

// In NestJS 12 the guard of the application is here too, and charges a message no second time.
@UseGuards(RateLimitGuard)
@WebSocketGateway({ path: '/chat' })
export class ChatGateway {
  @RateLimit({ name: 'chat', limit: 5, window: '10s' })
  @SubscribeMessage('say')
  say(@MessageBody() text: string) {
    return { event: 'said', data: text }
  }
}
