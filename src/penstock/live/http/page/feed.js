// A worker that asks the controller once a second, so that neither waiting nor parsing a long
// answer takes the page's time; it hands answers on in pieces that take a millisecond each.

const ASK_EVERY = 1000;
const HIDDEN_EVERY = 10000;
const ANSWER_WITHIN = 10000;
const JOBS_A_PIECE = 100;
const STRETCHES_A_PIECE = 1500;

let token = null;
let asker = 0; // whose answers these are: the page drops those of who asked before
let cursor = null;
let hidden = false;
let asking = false;
let timer = 0;
let lastAnswer = null;

onmessage = ({ data }) => {
  if ("token" in data) {
    token = data.token;
    asker = data.asker;
    cursor = null;
  }
  if ("hidden" in data) hidden = data.hidden;
  if (data.whole) cursor = null;
  clearTimeout(timer);
  if (!asking) ask();
};

function tell(piece) {
  postMessage({ ...piece, asker });
}

function pieces(kind, rows, length) {
  for (let k = 0; k < rows.length; k += length) {
    tell({ kind, rows: rows.slice(k, k + length) });
  }
}

function handOn(answer) {
  const { jobs = [], stretches = [], samples = [], ...head } = answer;
  const heard = Date.now() / 1000;
  lastAnswer = heard;
  cursor = head.cursor;
  tell({ kind: "begin", head, heard });
  pieces("jobs", jobs, JOBS_A_PIECE);
  pieces("stretches", stretches, STRETCHES_A_PIECE);
  pieces("samples", samples, JOBS_A_PIECE);
  tell({ kind: "end" });
}

async function ask() {
  asking = true;
  const asked = asker;
  try {
    const since = cursor === null ? "" : `?since=${encodeURIComponent(cursor)}`;
    const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
    const response = await fetch(`/v1/timeline${since}`, {
      headers, cache: "no-store", signal: AbortSignal.timeout(ANSWER_WITHIN),
    });
    const answer = await response.json();
    if (asked !== asker) cursor = null; // of whoever asked before
    else if (response.ok) handOn(answer);
    else if (response.status === 401) {
      cursor = null; // the page forgets what it knew
      tell({ kind: "denied", had: token !== null });
    } else tell({ kind: "lost", since: lastAnswer, why: answer.error ?? `status ${response.status}` });
  } catch (error) {
    const why = error.name === "TimeoutError" ? "it takes too long" : "it cannot be reached";
    if (asked === asker) tell({ kind: "lost", since: lastAnswer, why });
  }
  asking = false;
  if (asked !== asker) ask();
  else timer = setTimeout(ask, hidden ? HIDDEN_EVERY : ASK_EVERY);
}
