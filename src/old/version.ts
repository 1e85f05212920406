import packageJson from '../../package.json' with { type: 'json' }

/** The package's version. */
export function packageVersion(): string {
  return packageJson.version
}
