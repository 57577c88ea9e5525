// Requests beside the feed, with the token, if there is one.

let token = null;
try {
  token = sessionStorage.getItem("penstock-token");
} catch {
  // storage is disabled: the token lasts until the page is closed
}

/** Return the token, or null. */
export function currentToken() {
  return token;
}

/** Store a token in this tab; null removes it. */
export function storeToken(text) {
  token = text;
  try {
    if (text === null) sessionStorage.removeItem("penstock-token");
    else sessionStorage.setItem("penstock-token", text);
  } catch {
    // as above
  }
}

/** An error answer of the controller: its status, message and hint; status 0: no answer. */
export class HttpError extends Error {
  constructor(status, { error, hint } = {}) {
    super(error ?? `status ${status}`);
    this.status = status;
    this.hint = hint ?? "";
  }
}

/** Send a request and return the answer; throws HttpError. */
export async function request(path, { method = "GET", body } = {}) {
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method, headers, cache: "no-store", signal: AbortSignal.timeout(15000),
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new HttpError(0, { error: "the controller does not answer", hint: "the page tries again" });
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new HttpError(response.status, answer);
  return answer;
}
