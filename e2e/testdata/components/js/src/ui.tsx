// What browsers load of the application: the same file in both languages.
import { useState } from "react";
import { useStreamContext } from "@langchain/langgraph-sdk/react-ui";
import { greeting } from "page-greeting";
import "./ui.css";

function Weather({ city }: { city: string }) {
  const [seen, setSeen] = useState(0);
  const { messages } = useStreamContext();
  return (
    <button className="weather" onClick={() => setSeen(seen + 1)}>
      {greeting}: {city} is {String(messages.at(-1)?.content)}, seen {seen}
    </button>
  );
}

export default { weather: Weather };
