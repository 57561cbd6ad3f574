// Installs what package-lock.json names when node_modules holds something else; otherwise returns at once.
// Runs on whatever Node the machine has (18 or later), before the Node that the project brings is there.
'use strict'
const { spawnSync } = require('node:child_process')
const { lstatSync, readFileSync } = require('node:fs')
const { join } = require('node:path')

const root = join(__dirname, '..')
const modules = join(root, 'node_modules')

// `npm ci` empties the folder first. Behind a link that is the folder of another checkout, which is left to that one.
if (!isLink(modules) && !isInstalled()) {
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

function isLink(path) {
  try {
    return lstatSync(path).isSymbolicLink()
  } catch {
    return false // Nothing is there yet.
  }
}

// npm leaves a list of what it installed, written last. Versions are compared, not the times of the two files: a
// checkout or a merge changes those while everything stays as it was. Other platforms' packages are not there.
function isInstalled() {
  const wanted = packagesIn(join(root, 'package-lock.json'))
  const installed = packagesIn(join(modules, '.package-lock.json'))
  return Object.keys(wanted).every((path) => {
    if (path === '' || wanted[path].link) return true
    const found = installed[path]
    return found === undefined ? wanted[path].optional === true : found.version === wanted[path].version
  })
}

function packagesIn(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).packages
  } catch {
    return {} // Nothing was installed yet.
  }
}
