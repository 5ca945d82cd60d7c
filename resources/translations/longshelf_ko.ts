<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="ko" sourcelanguage="en">
  <context>
    <name>Adder</name>
    <message>
      <source>Check whether it was moved or deleted.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>{0} was not found.</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>Asking</name>
    <message>
      <source>Answering…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Choosing among {0} parts…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Choosing parts…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Opening the memory…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Reading these documents together for the first time…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Reading your question…</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>Body</name>
    <message>
      <source>Copy code</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>ChatPane</name>
    <message>
      <source>Answer</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Cancel</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Choose which documents the question is about first.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Editing an earlier question: it becomes a branch of its own.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>New chat</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>No model is installed yet. Install one first; the question stays here.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Nothing of it has been read yet. The first part can be asked as soon as it is finished.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Open this address in the web browser?</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The last question is still being answered. Esc stops it.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>You</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>{0}: {1} of {2} parts read so far</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>Chats</name>
    <message>
      <source>New chat</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>Chooser</name>
    <message>
      <source>All documents</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Choose documents</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Choose the documents the question is about</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Documents the question is about</source>
      <translation type="unfinished" />
    </message>
    <message numerus="yes">
      <source>{0} and %n more</source>
      <translation type="unfinished">
        <numerusform />
      </translation>
    </message>
  </context>
  <context>
    <name>Commands</name>
    <message>
      <source>&amp;About Longshelf</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Add files…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Ask about this</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Cancel reading</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Copy the last answer</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Delete chat…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Export chat…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Handbook</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Keyboard shortcuts</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Library</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;New chat</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Next citation</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Pause</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Previous citation</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Quit</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Resume</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Search the library</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Send</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Settings…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Source</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Write a question</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Add a &amp;folder…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Add a folder of text or code as one document</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Add documents to the library</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Add from the &amp;clipboard</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Add the files whose paths were copied</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Answer a&amp;gain</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Ask the last question again, as another branch</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Choose &amp;documents…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Choose which documents the question is about</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Close the window; reading goes on at the next start</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Copy the last answer as the model wrote it</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Delete the selected chat</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Find documents by title and chats by their words</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Forget the selected; files on disk stay</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Give the selected chat another name</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Go on reading every paused document</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Go on reading this document</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Go to the end of the chat and follow it</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Go to the place where questions are typed</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Jump to the &amp;latest</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>List every command and its key</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>List the files left out of this folder, with the reason</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Move to the next pane</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Ne&amp;xt pane</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Open the folder in which the source file lies</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Pause &amp;all reading</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Re&amp;move from the library…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Read the handbook in the source pane</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Read this document again from where it failed</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Rena&amp;me chat</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Resume a&amp;ll reading</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>S&amp;top</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Save the open chat as Markdown or JSON</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Send the question (Enter)</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Show or hide the library</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Show or hide the source pane</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Show the next cited passage</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Show the previous cited passage</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Show the source &amp;file</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Start a new chat</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Start a new chat about the selected documents</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Stop answering; the text so far is kept</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Stop reading every document for now</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Stop reading this document for now; what is read is kept</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Stop reading this document; what is read stays askable</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Threads, language, theme and storage</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Try a&amp;gain</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Version, model and licence</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>What was &amp;skipped…</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>Composer</name>
    <message>
      <source>Ask about these documents…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Question</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>Details</name>
    <message>
      <source>Answered in</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Device</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Document tokens read again</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Draft accepted</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Error measured</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Exact</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Figures of this answer</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>First token after</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Memory opened in</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Memory read</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Mode</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Model</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Parts chosen in</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Parts read</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Speed</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Tokens answered</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Tokens from memory</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Tokens of question and chat</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>{0} of {1}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>{0} s</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>{0} tokens/s</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>DropOverlay</name>
    <message numerus="yes">
      <source>%n file(s)</source>
      <translation type="unfinished">
        <numerusform />
      </translation>
    </message>
    <message numerus="yes">
      <source>%n folder(s)</source>
      <translation type="unfinished">
        <numerusform />
      </translation>
    </message>
    <message>
      <source>Counting…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Drop to add {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>more than {0}</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>LibraryPane</name>
    <message>
      <source>Chats</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Delete</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Delete the chat “{0}”?</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Documents</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Its memory is deleted and {0} are freed. The files on disk and the chats stay.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Its questions and answers are deleted. The documents stay.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Remove</source>
      <translation type="unfinished" />
    </message>
    <message numerus="yes">
      <source>Remove %n document(s) from the library?</source>
      <translation type="unfinished">
        <numerusform />
      </translation>
    </message>
    <message>
      <source>Remove “{0}” from the library?</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Search</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Search the library</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>MessageView</name>
    <message>
      <source>A small model to try Longshelf with. Its answers are often wrong; where it points is still useful.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Answer again</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Citations</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Copy</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Details</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Edit and ask again</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Next version</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Not found in these documents.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Previous version</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Stopped before the first word.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Stopped. The text so far is kept.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The model gave an empty answer.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The nearest passages:</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>This answer failed. The question is kept; you can ask it again.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Version {0} of {1}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Waiting for the engine…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>cut at the length limit</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>from memory</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>read for the first time together: {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>read {0} of {1} parts</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>trial model</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>QuestionBox</name>
    <message>
      <source>Exact</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Exact: the whole memory of the chosen parts is read for every word.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Mode: exact</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>trial model</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>ReaderPane</name>
    <message>
      <source>Citations</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Click a number in an answer to see the passage here, or a document to read it.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>File</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Place in the document</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>SettingsDialog</name>
    <message>
      <source>&amp;Language</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Theme</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>As the system</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Automatic</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Dark</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Documents {0} · models {1} · free on this disk {2}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Home folder</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>How many processor cores the engine uses. Takes effect with the next question.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Language</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Light</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Settings</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Storage used</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Th&amp;reads</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The language changes at the next start.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Theme</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Threads</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>ShortcutsDialog</name>
    <message>
      <source>Break the line in a question</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Command</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Key</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Keyboard shortcuts</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>New line</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Send</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Send the question</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>What it does</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>SkippedDialog</name>
    <message numerus="yes">
      <source>%n file(s) were skipped.</source>
      <translation type="unfinished">
        <numerusform />
      </translation>
    </message>
    <message>
      <source>Skipped in “{0}”</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>StartPage</name>
    <message>
      <source>Add a book, a contract, a folder of code</source>
      <translation type="unfinished" />
    </message>
    <message numerus="yes">
      <source>Ask about %n document(s)</source>
      <translation type="unfinished">
        <numerusform />
      </translation>
    </message>
    <message>
      <source>Ask about “{0}”</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Ask your documents</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Cancel</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Checking the download</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Converting the model</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Download and install</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Downloading</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Drop files or a folder anywhere on this window, paste a path, or choose files. Plain text, Markdown and source code are read. The document is read once; you can ask as soon as its first part is finished.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>It is a trial model: small, quick, and English only. It finds places well, but its answers are often wrong, and it can't reason, calculate or read other languages well. Larger models can be installed later.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Longshelf</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Longshelf reads a long document once, remembers it on this computer and answers questions about it, with the place in the source beside every answer. Nothing leaves this computer.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Preparing the vocabulary</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Progress of the installation</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Start with the handbook</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Starting the download…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Starting the engine…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The answer shows where it stands in the text.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The trial model reads English, so this is the English handbook. The Help menu has it in your language.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>To begin, it needs a language model: SmolLM2-135M-Instruct (licence Apache-2.0), a download of about 93 MB that takes about 270 MB on disk. It is the only time the network is used.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Welcome to Longshelf</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>StatusLine</name>
    <message numerus="yes">
      <source>%n more waiting</source>
      <translation type="unfinished">
        <numerusform />
      </translation>
    </message>
    <message>
      <source>Downloading a model: the network is used until this is done</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Offline</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Starting the engine…</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The engine is not running</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>answering</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>loading the model</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>ready</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>TextView</name>
    <message>
      <source>Text of the document</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>Transcript</name>
    <message>
      <source>Chat</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Jump to the latest</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>Trouble</name>
    <message>
      <source>A piece of a document's memory is damaged.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>A piece of a document's memory is missing.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>A scan needs text recognition first.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Add plain text, Markdown or source code.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Check its permissions.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Check the connection and try again.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Check whether it was moved or deleted.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Choose another with --home.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Documents, chats and your question are kept.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Free some space, then resume; what is read is kept.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Install one from the start page.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>It is not used. Read the document again.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>It is started again; ask the question once more.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>No model is installed.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Read the document again.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Run “longshelf doctor --repair” in a terminal.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Save it as UTF-8 and add it again.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Something in Longshelf went wrong.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Split it into smaller files.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The catalog is damaged.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The disk is full.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The download failed.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The encoding of the text was not recognised.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The engine stopped unexpectedly.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The file can't be opened.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The file is too large.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>The home folder can't be used.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>There is no text in it.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>This file or entry was not found.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>This format can't be read yet.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>This home was made by a newer version.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>This is not a text file.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>This version reads plain text, Markdown and source code.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Try again. If it happens again, report the details.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Update Longshelf.</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>TroubleBar</name>
    <message>
      <source>Copy the details</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Details</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Dismiss</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>TwoLines</name>
    <message>
      <source>Name of the chat</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>Window</name>
    <message>
      <source>&amp;Chat</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Documents</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;File</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;Help</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>&amp;View</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>About Longshelf</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Add a folder</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Add documents</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Copy a file in the file manager, or its path, and try again.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Export chat</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>JSON (*.json)</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Licence: Apache-2.0</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Markdown (*.md)</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>No path was copied.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Reads long documents once, remembers them, and answers with the place in the source. Offline.</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Start the engine</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>{0} can't be written: {1}.</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>Words</name>
    <message numerus="yes">
      <source>%n token(s)</source>
      <translation type="unfinished">
        <numerusform />
      </translation>
    </message>
    <message>
      <source>Damaged</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Failed</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>No text</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Paused</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Queued</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Reading the text</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Ready</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Remembering {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Skipped</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>a link to elsewhere</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>about {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>by you</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>can't be opened: permission</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>empty</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>encoding not recognised</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>left out by the folder's ignore rules</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>line {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>looks like a secret (key, password)</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>not a regular file</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>not a text</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>page {0}</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>the source file is gone, its text is kept</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>too large</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>{0} %</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>{0} h</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>{0} h {1} min</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>{0} left</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>{0} min</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>{0} s</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>_Gutter</name>
    <message>
      <source>Line numbers</source>
      <translation type="unfinished" />
    </message>
  </context>
  <context>
    <name>_Popup</name>
    <message>
      <source>All documents</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Documents</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Documents the question is about</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Search</source>
      <translation type="unfinished" />
    </message>
    <message>
      <source>Search documents</source>
      <translation type="unfinished" />
    </message>
  </context>
</TS>
