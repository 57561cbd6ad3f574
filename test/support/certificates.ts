import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TlsConfig } from '../../src/config/index.ts'
import { createRealPlatform } from '../../src/platform/index.ts'
import { loadTls, type TlsIdentity } from '../../src/rpc/index.ts'

/** A CA in a folder, made with openssl. */
export interface Authority {
  /** Its certificate, in PEM. */
  readonly file: string
  /** A key with a certificate of this CA, in files named after it. */
  issue(name: string, options?: CertificateOptions): Issued
}

export interface CertificateOptions {
  /** Subject alternative names; 'DNS:localhost,IP:127.0.0.1' when left out. */
  readonly names?: string
  /** As openssl writes times: 20200101000000Z. From a moment ago for a month when left out. */
  readonly validFrom?: string
  readonly validUntil?: string
  /** `serverAuth`, `clientAuth`, between commas; any when left out. */
  readonly purposes?: string
}

export interface Issued {
  readonly keyFile: string
  readonly certificateFile: string
  /** Both in one file, as `ssl.keystore.location` takes it. */
  readonly keyStoreFile: string
}

/** Runs openssl to its end; throws with what it said. */
export function openssl(folder: string, args: readonly string[]): void {
  execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
}

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

/** Makes a CA in `folder`; the names of several have to differ. */
export function createAuthority(folder: string, caName: string): Authority {
  const files = (name: string) => ({ key: `${name}.key`, certificate: `${name}.crt` })
  const ca = files(caName)
  openssl(folder, [
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    ca.key,
    '-out',
    ca.certificate,
    '-days',
    '30',
    '-subj',
    `/CN=${caName}`,
  ])
  return {
    file: join(folder, ca.certificate),
    issue(name, { names = 'DNS:localhost,IP:127.0.0.1', validFrom, validUntil, purposes } = {}) {
      const { key, certificate } = files(name)
      openssl(folder, ['req', ...newKey, '-keyout', key, '-out', `${name}.csr`, '-subj', `/CN=${name}`])
      const extensions = [
        `subjectAltName=${names}`,
        ...(purposes === undefined ? [] : [`extendedKeyUsage=${purposes}`]),
      ]
      // `openssl ca` alone takes times that are past.
      const settings = [
        '[ca]\ndefault_ca=own\n[own]',
        `new_certs_dir=.\ndatabase=${name}.db\nrand_serial=yes\ndefault_md=sha256\npolicy=any\nunique_subject=no`,
        `[any]\ncommonName=supplied\n[more]\n${extensions.join('\n')}\n`,
      ]
      writeFileSync(join(folder, `${name}.cnf`), settings.join('\n'))
      writeFileSync(join(folder, `${name}.db`), '')
      const times = [
        ...(validFrom === undefined ? [] : ['-startdate', validFrom]),
        ...(validUntil === undefined ? ['-days', '30'] : ['-enddate', validUntil]),
      ]
      const signing = ['-config', `${name}.cnf`, '-extensions', 'more', '-cert', ca.certificate, '-keyfile', ca.key]
      openssl(folder, ['ca', '-batch', '-notext', ...signing, ...times, '-in', `${name}.csr`, '-out', certificate])
      const keyStore = `${name}.pem`
      execFileSync('sh', ['-c', `cat ${key} ${certificate} > ${keyStore}`], { cwd: folder })
      return {
        keyFile: join(folder, key),
        certificateFile: join(folder, certificate),
        keyStoreFile: join(folder, keyStore),
      }
    },
  }
}

/** What a node with such a certificate has, that trusts the CA and asks for certificates. */
export async function tlsOf(
  trusted: Authority,
  own: Issued | string | undefined,
  changes: Partial<TlsConfig> & { readonly nowMs?: number } = {},
): Promise<TlsIdentity> {
  const issued = typeof own === 'string' ? trusted.issue(own) : own
  const { files, clock } = createRealPlatform()
  const { nowMs = clock.now(), ...config } = changes
  const location = (key: string, text: string) => ({ key, text })
  return await loadTls(
    {
      keyStore:
        issued === undefined
          ? undefined
          : {
              type: 'PEM',
              location: location('ssl.keystore.location', issued.keyStoreFile),
              keyPassword: undefined,
            },
      trustStore: { location: location('ssl.truststore.location', trusted.file) },
      clientAuth: 'required',
      checksHostNames: true,
      versions: ['TLSv1.2', 'TLSv1.3'],
      ...config,
    },
    { files, nowMs, listens: true },
  )
}
