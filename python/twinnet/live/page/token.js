// The token of the printed address, which the first visit exchanges for a cookie.

/** Takes it out of the address bar and of the history. */
export function leaveToken() {
  if (location.search) history.replaceState(null, "", location.pathname);
}
