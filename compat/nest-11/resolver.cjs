/**
 * Finds NestJS 11, where the tests of @sluice/nestjs would find that of the root.
 * @param {string} path
 * @param {{ defaultResolver(path: string, options: object): string }} options
 */
module.exports = (path, options) =>
  options.defaultResolver(path, path.startsWith('@nestjs/') ? { ...options, basedir: __dirname } : options)
