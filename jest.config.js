/**
 * Compiles to CommonJS, with standard decorators or those of NestJS.
 * @param {import('@swc/core').TransformConfig} transform
 * @returns {[string, unknown]}
 */
const swc = (transform) => [
  '@swc/jest',
  {
    swcrc: false,
    jsc: { parser: { syntax: 'typescript', decorators: true }, transform, target: 'es2023' },
    module: { type: 'commonjs' },
  },
]
const standardDecorators = swc({ decoratorVersion: '2022-03' })
const nestDecorators = swc({ legacyDecorator: true, decoratorMetadata: true })

/** @type {import('jest').Config} */
const base = {
  testEnvironment: 'node',
  testPathIgnorePatterns: ['/node_modules/', '/dist/'],
  modulePathIgnorePatterns: ['<rootDir>/packages/[^/]+/dist/'],
  // A global is slow to reach from the sandbox of a test, and the algorithms reach for this one all the time.
  sandboxInjectedGlobals: ['Math'],
  transform: { '\\.ts$': standardDecorators },
  // Tests run from source: a package is its src, and the .js of an import is the .ts beside it.
  moduleNameMapper: {
    '^@sluice/([a-z-]+)$': '<rootDir>/packages/$1/src/index.ts',
    '^@sluice/([a-z-]+)/([a-z-]+)$': '<rootDir>/packages/$1/src/$2',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
}

/** @type {import('jest').Config} */
const nest = {
  ...base,
  testMatch: ['<rootDir>/packages/nestjs/**/*.test.ts'],
  transform: { '/packages/nestjs/.+\\.ts$': nestDecorators, ...base.transform },
}

/** @type {import('jest').Config} */
export default {
  // Half of what most tests do is to wait for a server.
  maxWorkers: '100%',
  testTimeout: 30_000,
  projects: [
    {
      ...base,
      displayName: 'all',
      testMatch: [
        '<rootDir>/packages/!(nestjs)/**/*.test.ts',
        '<rootDir>/examples/**/*.test.ts',
        '<rootDir>/scripts/**/*.test.ts',
      ],
    },
    {
      ...nest,
      displayName: 'nest-12',
      // Jest cannot load the ES modules of NestJS 12, and of what it needs, as they are.
      transform: { ...nest.transform, '\\.js$': standardDecorators },
      transformIgnorePatterns: [
        '/node_modules/(?!(@nestjs|@tokenizer|cookie|file-type|strtok3|token-types|uint8array-extras)/)',
      ],
    },
    { ...nest, displayName: 'nest-11', resolver: '<rootDir>/compat/nest-11/resolver.cjs' },
  ],
}
