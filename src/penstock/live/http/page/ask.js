// Questions beside the feed, with the token that was given, if any.

let token = null;
try {
  token = sessionStorage.getItem("penstock-token");
} catch {
  // then it holds until the page is left
}

/** Return the token, or null. */
export function theToken() {
  return token;
}

/** Keep a token in this tab; null forgets it. */
export function keepToken(text) {
  token = text;
  try {
    if (text === null) sessionStorage.removeItem("penstock-token");
    else sessionStorage.setItem("penstock-token", text);
  } catch {
    // as above
  }
}

/** What the controller refused, with its status and what to do. */
export class RefusedError extends Error {
  constructor(status, { error, hint } = {}) {
    super(error ?? `status ${status}`);
    this.status = status;
    this.hint = hint ?? "";
  }
}

/** Ask, and return the answer; RefusedError if there is none. */
export async function ask(path, { method = "GET", body } = {}) {
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method, headers, cache: "no-store", signal: AbortSignal.timeout(15000),
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new RefusedError(0, { error: "the controller does not answer", hint: "it is asked again when it does" });
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new RefusedError(response.status, answer);
  return answer;
}
