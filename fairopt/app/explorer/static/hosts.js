// The two hosts outside of notebooks: a local server, and a page in a file that contains its answers.

function hosted(start, host, answer) {
  const heard = [];
  return {
    get: (name) => ({ start, host })[name],
    on: (event, callback) => heard.push(callback),
    send: ({ id, question }) => {
      answer(question).catch((error) => ({ error: `No answer: ${error.message}. Is the command still running?`, where: "" }))
        .then((reply) => heard.forEach((callback) => callback({ id, reply })));
    },
  };
}

async function live() {
  const post = async (question) => {
    const reply = await fetch("ask", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question) });
    return reply.json();
  };
  render({ model: hosted(await post({ ask: "start" }), "live", post), el: document.getElementById("explorer") });
}

// Decode data that `pack` of page.py has encoded.
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

async function page() {
  if (typeof DecompressionStream === "undefined") { document.getElementById("explorer").textContent = "This page needs a browser of 2023 or later."; return; }
  const data = await unpacked(document.getElementById("data").textContent);
  const at = (name, alpha, from = data.views) => from[name] && (from[name][data.start.alphas.map(String).indexOf(String(alpha))] || from[name][0]);
  const known = {
    answer: ({ state }) => at(state.mechanism, state.alpha),
    row: ({ mechanism, state }) => { const view = at(mechanism, state.alpha); return view && (view.error ? view : { ...view.measures, mechanism: view.mechanism, pooled: view.pooled }); },
    several: ({ state }) => ({ text: data.several[String(state.alpha)] || "" }),
    more: ({ state }) => at(state.mechanism, state.alpha, data.more),
    python: ({ state }) => ({ text: data.head + data.calls[state.mechanism].replace("ALPHA", String(state.alpha)) }),
    now: () => ({}),
    file: () => ({ text: data.file }),
  };
  const answer = async (question) => known[question.ask](question) || { error: "this page has no answer to that", where: "mechanism" };
  render({ model: hosted(data.start, "page", answer), el: document.getElementById("explorer") });
}

if (document.getElementById("explorer")) { if (document.getElementById("data")) page(); else live(); }
