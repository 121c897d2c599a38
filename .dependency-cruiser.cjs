// The arrows between packages: adapters and stores import core, core imports nobody.
// Tests (*.test.ts and packages/*/test) may import what they need.
const core = require('./packages/core/package.json')
const coreDependencies = Object.keys({ ...core.dependencies, ...core.peerDependencies })

const source = (packages) => ({ path: `^packages/${packages}/src/`, pathNot: '\\.test\\.ts$' })

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'only-core',
      comment: 'A package imports no other workspace package than core, and never an adapter.',
      severity: 'error',
      from: source('([^/]+)'),
      to: { path: '^(packages|examples|scripts)/', pathNot: '^packages/($1|core)/' },
    },
    {
      name: 'core-by-name',
      comment: 'Core is entered by its public entry points only.',
      severity: 'error',
      from: { path: '^packages/([^/]+)/src/', pathNot: '^packages/core/|\\.test\\.ts$' },
      to: { path: '^packages/core/', pathNot: '^packages/core/src/(index|node|user)\\.ts$' },
    },
    {
      name: 'core-imports-no-other-package',
      comment:
        'Core knows no framework and no Redis client: its declared dependencies are all it may import.',
      severity: 'error',
      from: source('core'),
      to: { path: 'node_modules/', pathNot: `node_modules/(@types/)?(${coreDependencies.join('|')})/` },
    },
    {
      name: 'core-imports-no-builtin',
      comment: 'Core runs on edge runtimes: only its Node.js entry, src/node.ts, may import Node.js modules.',
      severity: 'error',
      from: { path: '^packages/core/src/', pathNot: '\\.test\\.ts$|^packages/core/src/node\\.ts$' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'no-test-in-source',
      comment: 'What is published imports no test code.',
      severity: 'error',
      from: source('[^/]+'),
      to: { path: '^packages/[^/]+/test/|\\.test\\.ts$' },
    },
    {
      name: 'no-cycles',
      comment: 'Modules form a tree of layers.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-unresolved',
      comment: 'Every import leads somewhere.',
      severity: 'error',
      from: {},
      // What the runtime itself provides.
      to: { couldNotResolve: true, pathNot: '^cloudflare:' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '/dist/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.check.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['types', 'import', 'require', 'node', 'default'],
    },
  },
}
