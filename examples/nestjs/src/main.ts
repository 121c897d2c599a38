// A limit for the whole application, a login that fails closed, plans by API key, and a WebSocket gateway.
import 'reflect-metadata'
import { NestFactory } from '@nestjs/core'
import { WsAdapter } from '@nestjs/platform-ws'
import { AppModule } from './app.module.js'
import { StoreService } from './store.module.js'

const { PORT = '3000' } = process.env

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
app.useWebSocketAdapter(new WsAdapter(app))
app.enableShutdownHooks()
await app.listen(Number(PORT), '127.0.0.1')
console.log(
  `NestJS listening on ${await app.getUrl()}, counting in ${app.get(StoreService).store ? 'Redis' : 'memory'}`,
)
