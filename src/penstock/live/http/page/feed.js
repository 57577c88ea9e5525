// A worker that requests the timeline once per second, so that neither waiting nor parsing a long
// answer blocks the page; it passes answers on in pieces that take a millisecond each.

const INTERVAL = 1000;
const HIDDEN_INTERVAL = 10000;
const TIMEOUT = 10000;
const JOBS_PER_PIECE = 100;
const INTERVALS_PER_PIECE = 1500;

let token = null;
let session = 0; // counts tokens: the page drops answers to an earlier token
let cursor = null;
let hidden = false;
let busy = false;
let timer = 0;
let lastAnswer = null;

onmessage = ({ data }) => {
  if ("token" in data) {
    token = data.token;
    session = data.session;
    cursor = null;
  }
  if ("hidden" in data) hidden = data.hidden;
  if (data.whole) cursor = null;
  clearTimeout(timer);
  if (!busy) request();
};

function send(piece) {
  postMessage({ ...piece, session });
}

function pieces(kind, rows, length) {
  for (let k = 0; k < rows.length; k += length) {
    send({ kind, rows: rows.slice(k, k + length) });
  }
}

function passOn(answer) {
  const { jobs = [], stretches = [], samples = [], ...head } = answer;
  const received = Date.now() / 1000;
  lastAnswer = received;
  cursor = head.cursor;
  send({ kind: "begin", head, received });
  pieces("jobs", jobs, JOBS_PER_PIECE);
  pieces("stretches", stretches, INTERVALS_PER_PIECE);
  pieces("samples", samples, JOBS_PER_PIECE);
  send({ kind: "end" });
}

async function request() {
  busy = true;
  const current = session;
  try {
    const since = cursor === null ? "" : `?since=${encodeURIComponent(cursor)}`;
    const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
    const response = await fetch(`/v1/timeline${since}`, {
      headers, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT),
    });
    const answer = await response.json();
    if (current !== session) cursor = null; // the answer to an earlier token
    else if (response.ok) passOn(answer);
    else if (response.status === 401) {
      cursor = null; // the page clears its model
      send({ kind: "denied", had: token !== null });
    } else send({ kind: "lost", since: lastAnswer, why: answer.error ?? `status ${response.status}` });
  } catch (error) {
    const why = error.name === "TimeoutError" ? "the answer takes too long" : "it cannot be reached";
    if (current === session) send({ kind: "lost", since: lastAnswer, why });
  }
  busy = false;
  if (current !== session) request();
  else timer = setTimeout(request, hidden ? HIDDEN_INTERVAL : INTERVAL);
}
