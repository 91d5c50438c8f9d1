/**
 * The authenticated user as user code sees it (reference 12).
 *
 * @typedef {{identity: string, display_name: string, is_authenticated: boolean, permissions: string[], [key: string]: any}} User
 */

/**
 * A user with the defaults of what the authentication handler left out.
 *
 * @param {Record<string, any>} members
 * @returns {User}
 */
export function userOf(members) {
  const identity = members.identity ?? '';
  const given = Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== null));
  return { identity, display_name: identity, is_authenticated: true, permissions: [], ...given };
}
