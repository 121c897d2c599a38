import { Module } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { RateLimitGuard, RateLimitModule } from '@sluice/nestjs'
import { ApiController, AppController, UnknownController } from './app.controller.js'
import { ChatGateway } from './chat.gateway.js'
import { StoreModule, StoreService } from './store.module.js'

@Module({
  imports: [
    StoreModule,
    RateLimitModule.forRootAsync({
      imports: [StoreModule],
      inject: [StoreService],
      useFactory: ({ store }: StoreService) => ({
        ...(store && { store }),
        // In production keep the budget of 100 ms; a machine that also builds and tests may stall for longer.
        timeoutMs: 5000,
        name: 'app',
        limit: 60,
        window: '15m',
      }),
    }),
  ],
  controllers: [AppController, ApiController, UnknownController],
  providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }, ChatGateway],
})
export class AppModule {}
