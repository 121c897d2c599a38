/** @type {import('jest').Config} */
export default {
  testEnvironment: 'node',
  testMatch: [
    '<rootDir>/packages/**/*.test.ts',
    '<rootDir>/examples/**/*.test.ts',
    '<rootDir>/scripts/**/*.test.ts',
  ],
  testPathIgnorePatterns: ['/node_modules/', '/dist/'],
  modulePathIgnorePatterns: ['<rootDir>/packages/[^/]+/dist/'],
  testTimeout: 30_000,
  // A global is slow to reach from the sandbox of a test, and the algorithms reach for this one all the time.
  sandboxInjectedGlobals: ['Math'],
  transform: {
    '\\.ts$': [
      '@swc/jest',
      {
        swcrc: false,
        jsc: { parser: { syntax: 'typescript' }, target: 'es2023' },
        module: { type: 'commonjs' },
      },
    ],
  },
  // Tests run from source: a package is its src, and the .js of an import is the .ts beside it.
  moduleNameMapper: {
    '^@sluice/([a-z-]+)$': '<rootDir>/packages/$1/src/index.ts',
    '^@sluice/([a-z-]+)/([a-z-]+)$': '<rootDir>/packages/$1/src/$2.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
}
