// Installs what package-lock.json names when node_modules lacks it or is older; otherwise returns at once.
// Runs on whatever Node the machine has (18 or later), before the Node that the project brings is there.
'use strict'
const { spawnSync } = require('node:child_process')
const { existsSync, statSync } = require('node:fs')
const { join } = require('node:path')

const root = join(__dirname, '..')
const installed = join(root, 'node_modules', '.package-lock.json')
const wanted = join(root, 'package-lock.json')

if (!existsSync(installed) || statSync(installed).mtimeMs < statSync(wanted).mtimeMs) {
  console.error('Installing dependencies (about 20 seconds, once)')
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const result = spawnSync(npm, ['ci', '--loglevel=error', '--no-audit', '--no-fund'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (result.status !== 0) {
    console.error('`npm ci` failed; the lines above say why')
    process.exit(result.status === null ? 1 : result.status)
  }
}
