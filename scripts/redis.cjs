module.exports = require('./servers/redis.cjs')
