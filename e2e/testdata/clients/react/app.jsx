// A small chat page over the stock useStream hook. The address names what it talks to: ?api=URL&assistant=ID#THREAD.
// Everything it knows is in the text of its elements; what it can do, in its buttons. window.page is for the driver.
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { useStream } from "@langchain/langgraph-sdk/react";
import { experimental_loadShare, LoadExternalComponent, uiMessageReducer } from "@langchain/langgraph-sdk/react-ui";

const address = new URLSearchParams(location.search);
experimental_loadShare("page-greeting", { greeting: "From the page" });
window.page = { texts: [], custom: [], finished: 0 };

function Page() {
  const [threadId, setThreadId] = useState(location.hash.slice(1) || null);
  const stream = useStream({
    apiUrl: address.get("api"),
    assistantId: address.get("assistant"),
    threadId,
    onThreadId: (id) => {
      location.hash = id;
      setThreadId(id);
    },
    fetchStateHistory: true,
    reconnectOnMount: true,
    onCustomEvent: (data, { mutate }) => {
      window.page.custom.push(data);
      if (data?.type === "ui") mutate((prev) => ({ ...prev, ui: uiMessageReducer(prev.ui ?? [], data) }));
    },
    onFinish: () => window.page.finished++,
  });
  window.page.stream = stream;
  const last = stream.messages.at(-1);
  if (last?.type === "ai" && last.content && window.page.texts.at(-1) !== last.content) window.page.texts.push(last.content);
  return (
    <main>
      <h1>{address.get("assistant")}</h1>
      <p id="loading">{String(stream.isLoading)}</p>
      <p id="error">{stream.error ? String(stream.error.message ?? stream.error) : ""}</p>
      <p id="interrupt">{stream.interrupt ? JSON.stringify(stream.interrupt.value) : ""}</p>
      <pre id="values">{JSON.stringify(stream.values)}</pre>
      <ol>
        {stream.messages.map((m, i) => (
          <Message key={m.id ?? i} message={m} stream={stream} />
        ))}
      </ol>
      {stream.values.ui?.map((shown) => (
        <LoadExternalComponent key={shown.id} stream={stream} message={shown} className="component" />
      ))}
      <Composer stream={stream} />
      <button id="stop" onClick={() => stream.stop()}>
        Stop
      </button>
    </main>
  );
}

function Message({ message, stream }) {
  const meta = stream.getMessagesMetadata(message);
  const edit = () =>
    stream.submit(
      { messages: [{ type: "human", content: "3 times 5" }] },
      { checkpoint: meta?.firstSeenState?.parent_checkpoint },
    );
  return (
    <li data-type={message.type}>
      <span className="content">{String(message.content)}</span>
      {message.type === "human" && <button className="edit" onClick={edit}>Edit</button>}
      {meta?.branchOptions?.map((branch) => (
        <button key={branch} className="branch" onClick={() => stream.setBranch(branch)}>
          {branch === meta.branch ? "this" : "other"}
        </button>
      ))}
    </li>
  );
}

function Composer({ stream }) {
  const [text, setText] = useState("");
  const send = (event) => {
    event.preventDefault();
    const message = { type: "human", content: text };
    setText("");
    stream.submit({ messages: [message] }, { optimisticValues: (prev) => ({ ...prev, messages: [...(prev.messages ?? []), message] }) });
  };
  return (
    <form onSubmit={send}>
      <input id="text" value={text} onChange={(e) => setText(e.target.value)} />
      <button id="send">Send</button>
    </form>
  );
}

createRoot(document.getElementById("root")).render(<Page />);
