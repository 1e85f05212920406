/** Access by name of a permission: `read`, `write` or `admin`. `*` stands for all that are not named. */
export type Permissions = Readonly<Record<string, string>>

/** Whether these permissions include this access. */
export function permits(permissions: Permissions, name: string, access: 'read' | 'write'): boolean {
  const given = permissions[name] ?? permissions['*']
  return given !== undefined && (access === 'read' || given !== 'read')
}
