"""From a question to an answer with its sources: choosing parts, prompt, decode loop, citations."""
