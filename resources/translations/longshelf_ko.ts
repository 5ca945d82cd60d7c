<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="ko" sourcelanguage="en">
  <context>
    <name>Adder</name>
    <message>
      <source>Check whether it was moved or deleted.</source>
      <translation>옮겨졌거나 지워지지 않았는지 확인하세요.</translation>
    </message>
    <message>
      <source>{0} was not found.</source>
      <translation>{0}을(를) 찾을 수 없습니다.</translation>
    </message>
  </context>
  <context>
    <name>Asking</name>
    <message>
      <source>Answering…</source>
      <translation>답하는 중…</translation>
    </message>
    <message>
      <source>Choosing among {0} parts…</source>
      <translation>{0}개 부분 가운데서 고르는 중…</translation>
    </message>
    <message>
      <source>Choosing parts…</source>
      <translation>부분을 고르는 중…</translation>
    </message>
    <message>
      <source>Opening the memory…</source>
      <translation>기억을 여는 중…</translation>
    </message>
    <message>
      <source>Preparing this model for Fast answers, once; it takes some seconds…</source>
      <translation>이 모델이 빠르게 답하도록 준비하는 중… 처음 한 번만 몇 초 걸립니다</translation>
    </message>
    <message>
      <source>Reading part {0} of {1}…</source>
      <translation>{1}개 부분 중 {0}번째를 읽는 중…</translation>
    </message>
    <message>
      <source>Reading these documents together for the first time…</source>
      <translation>이 문서들을 함께 읽는 것은 처음이라 이어서 읽는 중…</translation>
    </message>
    <message>
      <source>Reading your question…</source>
      <translation>질문을 읽는 중…</translation>
    </message>
  </context>
  <context>
    <name>Body</name>
    <message>
      <source>Copy code</source>
      <translation>코드 복사</translation>
    </message>
  </context>
  <context>
    <name>ChatPane</name>
    <message>
      <source>Answer</source>
      <translation>답변</translation>
    </message>
    <message>
      <source>Cancel</source>
      <translation>취소</translation>
    </message>
    <message>
      <source>Editing an earlier question: it becomes a branch of its own.</source>
      <translation>앞선 질문을 고치는 중입니다. 별도의 갈래가 됩니다.</translation>
    </message>
    <message>
      <source>New chat</source>
      <translation>새 대화</translation>
    </message>
    <message>
      <source>Open this address in the web browser?</source>
      <translation>이 주소를 웹 브라우저에서 열까요?</translation>
    </message>
    <message>
      <source>The last question is still being answered. Esc stops it.</source>
      <translation>앞 질문에 아직 답하는 중입니다. Esc로 멈출 수 있습니다.</translation>
    </message>
    <message>
      <source>You</source>
      <translation>나</translation>
    </message>
  </context>
  <context>
    <name>Chats</name>
    <message>
      <source>New chat</source>
      <translation>새 대화</translation>
    </message>
  </context>
  <context>
    <name>Chooser</name>
    <message>
      <source>All documents</source>
      <translation>모든 문서</translation>
    </message>
    <message>
      <source>Choose documents</source>
      <translation>문서 고르기</translation>
    </message>
    <message>
      <source>Choose the documents the question is about</source>
      <translation>질문할 문서를 고릅니다</translation>
    </message>
    <message>
      <source>Documents the question is about</source>
      <translation>질문할 문서</translation>
    </message>
    <message numerus="yes">
      <source>{0} and %n more</source>
      <translation>
        <numerusform>{0} 외 %n개</numerusform>
      </translation>
    </message>
  </context>
  <context>
    <name>Commands</name>
    <message>
      <source>&amp;About Longshelf</source>
      <translation>Longshelf 정보(&amp;A)</translation>
    </message>
    <message>
      <source>&amp;Add files…</source>
      <translation>파일 추가(&amp;A)…</translation>
    </message>
    <message>
      <source>&amp;Ask about this</source>
      <translation>이 문서에 질문(&amp;A)</translation>
    </message>
    <message>
      <source>&amp;Cancel reading</source>
      <translation>읽기 취소(&amp;C)</translation>
    </message>
    <message>
      <source>&amp;Copy the last answer</source>
      <translation>마지막 답변 복사(&amp;C)</translation>
    </message>
    <message>
      <source>&amp;Delete chat…</source>
      <translation>대화 삭제(&amp;D)…</translation>
    </message>
    <message>
      <source>&amp;Export chat…</source>
      <translation>대화 내보내기(&amp;E)…</translation>
    </message>
    <message>
      <source>&amp;Fast answers</source>
      <translation>빠르게 답하기(&amp;F)</translation>
    </message>
    <message>
      <source>&amp;Forget the memory…</source>
      <translation>기억 지우기(&amp;F)…</translation>
    </message>
    <message>
      <source>&amp;Handbook</source>
      <translation>안내서(&amp;H)</translation>
    </message>
    <message>
      <source>&amp;Keyboard shortcuts</source>
      <translation>단축키(&amp;K)</translation>
    </message>
    <message>
      <source>&amp;Library</source>
      <translation>서재(&amp;L)</translation>
    </message>
    <message>
      <source>&amp;Models…</source>
      <translation>모델(&amp;M)…</translation>
    </message>
    <message>
      <source>&amp;New chat</source>
      <translation>새 대화(&amp;N)</translation>
    </message>
    <message>
      <source>&amp;Next citation</source>
      <translation>다음 인용(&amp;N)</translation>
    </message>
    <message>
      <source>&amp;Pause</source>
      <translation>일시 정지(&amp;P)</translation>
    </message>
    <message>
      <source>&amp;Previous citation</source>
      <translation>이전 인용(&amp;P)</translation>
    </message>
    <message>
      <source>&amp;Quit</source>
      <translation>끝내기(&amp;Q)</translation>
    </message>
    <message>
      <source>&amp;Resume</source>
      <translation>계속하기(&amp;R)</translation>
    </message>
    <message>
      <source>&amp;Search the library</source>
      <translation>서재에서 찾기(&amp;S)</translation>
    </message>
    <message>
      <source>&amp;Send</source>
      <translation>보내기(&amp;S)</translation>
    </message>
    <message>
      <source>&amp;Settings…</source>
      <translation>설정(&amp;S)…</translation>
    </message>
    <message>
      <source>&amp;Source</source>
      <translation>원문(&amp;S)</translation>
    </message>
    <message>
      <source>&amp;Write a question</source>
      <translation>질문 쓰기(&amp;W)</translation>
    </message>
    <message>
      <source>Add a &amp;folder…</source>
      <translation>폴더 추가(&amp;F)…</translation>
    </message>
    <message>
      <source>Add a folder of text or code as one document</source>
      <translation>글이나 코드가 든 폴더를 하나의 문서로 추가합니다</translation>
    </message>
    <message>
      <source>Add documents to the library</source>
      <translation>서재에 문서를 추가합니다</translation>
    </message>
    <message>
      <source>Add from the &amp;clipboard</source>
      <translation>클립보드에서 추가(&amp;C)</translation>
    </message>
    <message>
      <source>Add the files whose paths were copied</source>
      <translation>복사해 둔 경로의 파일을 추가합니다</translation>
    </message>
    <message>
      <source>Answer a&amp;gain</source>
      <translation>다시 답하기(&amp;G)</translation>
    </message>
    <message>
      <source>Answer e&amp;xactly</source>
      <translation>정확하게 다시 답하기(&amp;X)</translation>
    </message>
    <message>
      <source>Ask the last question again in Exact mode, as another branch</source>
      <translation>마지막 질문을 정확 모드로 다시 물어 새 갈래로 남깁니다</translation>
    </message>
    <message>
      <source>Ask the last question again, as another branch</source>
      <translation>마지막 질문을 다른 갈래로 다시 묻습니다</translation>
    </message>
    <message>
      <source>Choose &amp;documents…</source>
      <translation>문서 고르기(&amp;D)…</translation>
    </message>
    <message>
      <source>Choose the model that answers, add one of yours, or remove one</source>
      <translation>답할 모델을 고르거나, 가지고 있는 모델을 추가하거나, 지웁니다</translation>
    </message>
    <message>
      <source>Choose which documents the question is about</source>
      <translation>어떤 문서에 대한 질문인지 고릅니다</translation>
    </message>
    <message>
      <source>Close the window; reading goes on at the next start</source>
      <translation>창을 닫습니다. 읽기는 다음에 켤 때 이어집니다</translation>
    </message>
    <message>
      <source>Copy the last answer as the model wrote it</source>
      <translation>마지막 답변을 모델이 쓴 그대로 복사합니다</translation>
    </message>
    <message>
      <source>Delete the selected chat</source>
      <translation>고른 대화를 삭제합니다</translation>
    </message>
    <message>
      <source>Find documents by title and chats by their words</source>
      <translation>문서는 제목으로, 대화는 내용으로 찾습니다</translation>
    </message>
    <message>
      <source>Forget the selected; files on disk stay</source>
      <translation>고른 문서를 잊습니다. 디스크의 파일은 그대로 있습니다</translation>
    </message>
    <message>
      <source>Give the room of the selected back; text and chats stay</source>
      <translation>선택한 문서의 기억을 지워 공간을 비웁니다. 글과 대화는 남습니다</translation>
    </message>
    <message>
      <source>Give the selected chat another name</source>
      <translation>고른 대화의 이름을 바꿉니다</translation>
    </message>
    <message>
      <source>Go on reading every paused document</source>
      <translation>멈춘 문서를 모두 이어서 읽습니다</translation>
    </message>
    <message>
      <source>Go on reading this document</source>
      <translation>이 문서를 이어서 읽습니다</translation>
    </message>
    <message>
      <source>Go to the end of the chat and follow it</source>
      <translation>대화의 끝으로 가서 따라갑니다</translation>
    </message>
    <message>
      <source>Go to the place where questions are typed</source>
      <translation>질문을 쓰는 곳으로 갑니다</translation>
    </message>
    <message>
      <source>Jump to the &amp;latest</source>
      <translation>맨 끝으로(&amp;L)</translation>
    </message>
    <message>
      <source>Let the model in use read this document, which another one has read</source>
      <translation>다른 모델이 읽은 이 문서를 지금 쓰는 모델로 읽습니다</translation>
    </message>
    <message>
      <source>List every command and its key</source>
      <translation>모든 명령과 단축키를 보여 줍니다</translation>
    </message>
    <message>
      <source>List the files left out of this folder, with the reason</source>
      <translation>이 폴더에서 제외된 파일과 그 이유를 보여 줍니다</translation>
    </message>
    <message>
      <source>Move to the next pane</source>
      <translation>다음 칸으로 옮겨 갑니다</translation>
    </message>
    <message>
      <source>Ne&amp;xt pane</source>
      <translation>다음 칸(&amp;X)</translation>
    </message>
    <message>
      <source>Open the folder in which the source file lies</source>
      <translation>원본 파일이 있는 폴더를 엽니다</translation>
    </message>
    <message>
      <source>Pause &amp;all reading</source>
      <translation>읽기 모두 멈춤(&amp;A)</translation>
    </message>
    <message>
      <source>Re&amp;move from the library…</source>
      <translation>서재에서 제거(&amp;M)…</translation>
    </message>
    <message>
      <source>Read a part of the memory for each word, and estimate the rest</source>
      <translation>낱말마다 기억의 일부만 읽고 나머지는 어림합니다</translation>
    </message>
    <message>
      <source>Read the handbook in the source pane</source>
      <translation>원문 칸에서 안내서를 읽습니다</translation>
    </message>
    <message>
      <source>Read this document again from where it failed</source>
      <translation>실패한 곳부터 이 문서를 다시 읽습니다</translation>
    </message>
    <message>
      <source>Read with this &amp;model</source>
      <translation>이 모델로 읽기(&amp;M)</translation>
    </message>
    <message>
      <source>Rena&amp;me chat</source>
      <translation>대화 이름 바꾸기(&amp;M)</translation>
    </message>
    <message>
      <source>Resume a&amp;ll reading</source>
      <translation>읽기 모두 계속(&amp;L)</translation>
    </message>
    <message>
      <source>S&amp;top</source>
      <translation>멈추기(&amp;T)</translation>
    </message>
    <message>
      <source>Save the open chat as Markdown or JSON</source>
      <translation>열린 대화를 Markdown이나 JSON으로 저장합니다</translation>
    </message>
    <message>
      <source>Send the question (Enter)</source>
      <translation>질문을 보냅니다 (Enter)</translation>
    </message>
    <message>
      <source>Show or hide the library</source>
      <translation>서재를 보이거나 숨깁니다</translation>
    </message>
    <message>
      <source>Show or hide the source pane</source>
      <translation>원문 칸을 보이거나 숨깁니다</translation>
    </message>
    <message>
      <source>Show the next cited passage</source>
      <translation>다음 인용 구절을 보여 줍니다</translation>
    </message>
    <message>
      <source>Show the previous cited passage</source>
      <translation>이전 인용 구절을 보여 줍니다</translation>
    </message>
    <message>
      <source>Show the source &amp;file</source>
      <translation>원본 파일 보기(&amp;F)</translation>
    </message>
    <message>
      <source>Start a new chat</source>
      <translation>새 대화를 시작합니다</translation>
    </message>
    <message>
      <source>Start a new chat about the selected documents</source>
      <translation>고른 문서에 대해 새 대화를 시작합니다</translation>
    </message>
    <message>
      <source>Stop answering; the text so far is kept</source>
      <translation>답변을 멈춥니다. 여기까지의 글은 남습니다</translation>
    </message>
    <message>
      <source>Stop reading every document for now</source>
      <translation>모든 문서 읽기를 잠시 멈춥니다</translation>
    </message>
    <message>
      <source>Stop reading this document for now; what is read is kept</source>
      <translation>이 문서 읽기를 잠시 멈춥니다. 읽은 것은 남습니다</translation>
    </message>
    <message>
      <source>Stop reading this document; what is read stays askable</source>
      <translation>이 문서 읽기를 그만둡니다. 읽은 부분은 계속 질문할 수 있습니다</translation>
    </message>
    <message>
      <source>Threads, language, theme and storage</source>
      <translation>스레드, 언어, 테마, 저장 공간</translation>
    </message>
    <message>
      <source>Try a&amp;gain</source>
      <translation>다시 시도(&amp;G)</translation>
    </message>
    <message>
      <source>Version, model and licence</source>
      <translation>버전, 모델, 라이선스</translation>
    </message>
    <message>
      <source>What was &amp;skipped…</source>
      <translation>제외된 것 보기(&amp;S)…</translation>
    </message>
  </context>
  <context>
    <name>Composer</name>
    <message>
      <source>Ask about these documents…</source>
      <translation>이 문서에 대해 물어보세요…</translation>
    </message>
    <message>
      <source>Question</source>
      <translation>질문</translation>
    </message>
  </context>
  <context>
    <name>Details</name>
    <message>
      <source>Answered in</source>
      <translation>답한 시간</translation>
    </message>
    <message>
      <source>Device</source>
      <translation>장치</translation>
    </message>
    <message>
      <source>Document tokens read again</source>
      <translation>다시 읽은 문서 토큰</translation>
    </message>
    <message>
      <source>Draft accepted</source>
      <translation>채택된 초안</translation>
    </message>
    <message>
      <source>Error measured</source>
      <translation>측정된 오차</translation>
    </message>
    <message>
      <source>Figures of this answer</source>
      <translation>이 답변의 수치</translation>
    </message>
    <message>
      <source>First token after</source>
      <translation>첫 토큰까지</translation>
    </message>
    <message>
      <source>Memory opened in</source>
      <translation>기억을 연 시간</translation>
    </message>
    <message>
      <source>Memory read</source>
      <translation>읽은 기억</translation>
    </message>
    <message>
      <source>Memory read for each word</source>
      <translation>낱말마다 읽은 기억</translation>
    </message>
    <message>
      <source>Mode</source>
      <translation>방식</translation>
    </message>
    <message>
      <source>Model</source>
      <translation>모델</translation>
    </message>
    <message>
      <source>Parts chosen in</source>
      <translation>부분을 고른 시간</translation>
    </message>
    <message>
      <source>Parts read</source>
      <translation>읽은 부분</translation>
    </message>
    <message>
      <source>Speed</source>
      <translation>속도</translation>
    </message>
    <message>
      <source>Tokens answered</source>
      <translation>답변 토큰</translation>
    </message>
    <message>
      <source>Tokens from memory</source>
      <translation>기억에서 온 토큰</translation>
    </message>
    <message>
      <source>Tokens of question and chat</source>
      <translation>질문과 대화 토큰</translation>
    </message>
    <message>
      <source>{0} of {1}</source>
      <translation>{1}개 중 {0}개</translation>
    </message>
    <message>
      <source>{0} s</source>
      <translation>{0}초</translation>
    </message>
    <message>
      <source>{0} tokens/s</source>
      <translation>초당 {0}토큰</translation>
    </message>
  </context>
  <context>
    <name>DropOverlay</name>
    <message numerus="yes">
      <source>%Ln file(s)</source>
      <translation>
        <numerusform>파일 %Ln개</numerusform>
      </translation>
    </message>
    <message numerus="yes">
      <source>%n folder(s)</source>
      <translation>
        <numerusform>폴더 %n개</numerusform>
      </translation>
    </message>
    <message>
      <source>Counting…</source>
      <translation>세는 중…</translation>
    </message>
    <message>
      <source>Drop to add {0}</source>
      <translation>놓으면 추가합니다: {0}</translation>
    </message>
    <message>
      <source>more than {0}</source>
      <translation>{0} 이상</translation>
    </message>
  </context>
  <context>
    <name>Hints</name>
    <message>
      <source>Choose which documents the question is about first.</source>
      <translation>먼저 어떤 문서에 대한 질문인지 고르세요.</translation>
    </message>
    <message>
      <source>No model is installed yet. Install one first; the question stays here.</source>
      <translation>아직 설치된 모델이 없습니다. 먼저 모델을 설치하세요. 질문은 여기 그대로 있습니다.</translation>
    </message>
    <message>
      <source>Nothing of it has been read yet. The first part can be asked as soon as it is finished.</source>
      <translation>아직 읽은 부분이 없습니다. 첫 부분을 다 읽는 대로 질문할 수 있습니다.</translation>
    </message>
    <message>
      <source>{0}: {1} of {2} parts read so far</source>
      <translation>{0}: 지금까지 {2}개 부분 중 {1}개를 읽음</translation>
    </message>
  </context>
  <context>
    <name>Installing</name>
    <message>
      <source>Looking at the files</source>
      <translation>파일을 살펴보는 중</translation>
    </message>
    <message>
      <source>Measuring how the model reads</source>
      <translation>모델이 어떻게 읽는지 재는 중</translation>
    </message>
    <message>
      <source>Starting the download…</source>
      <translation>내려받기를 시작하는 중…</translation>
    </message>
  </context>
  <context>
    <name>LibraryPane</name>
    <message>
      <source>About {0} are freed. Text and chats stay; before the next question it has to be read again.</source>
      <translation>약 {0}가 비워집니다. 글과 대화는 남으며, 다음에 질문하려면 다시 읽어야 합니다.</translation>
    </message>
    <message>
      <source>Chats</source>
      <translation>대화</translation>
    </message>
    <message>
      <source>Delete</source>
      <translation>삭제</translation>
    </message>
    <message>
      <source>Delete the chat “{0}”?</source>
      <translation>대화 “{0}”을(를) 삭제할까요?</translation>
    </message>
    <message>
      <source>Documents</source>
      <translation>문서</translation>
    </message>
    <message>
      <source>Forget</source>
      <translation>지우기</translation>
    </message>
    <message numerus="yes">
      <source>Forget what was read of %n document(s)?</source>
      <translation>
        <numerusform>문서 %n개의 기억을 지울까요?</numerusform>
      </translation>
    </message>
    <message>
      <source>Its memory is deleted and {0} are freed. The files on disk and the chats stay.</source>
      <translation>문서의 기억이 지워지고 {0}가 비워집니다. 디스크의 파일과 대화는 그대로 있습니다.</translation>
    </message>
    <message>
      <source>Its questions and answers are deleted. The documents stay.</source>
      <translation>질문과 답변이 지워집니다. 문서는 그대로 있습니다.</translation>
    </message>
    <message>
      <source>Remove</source>
      <translation>제거</translation>
    </message>
    <message numerus="yes">
      <source>Remove %n document(s) from the library?</source>
      <translation>
        <numerusform>문서 %n개를 서재에서 제거할까요?</numerusform>
      </translation>
    </message>
    <message>
      <source>Remove “{0}” from the library?</source>
      <translation>“{0}”을(를) 서재에서 제거할까요?</translation>
    </message>
    <message>
      <source>Search</source>
      <translation>찾기</translation>
    </message>
    <message>
      <source>Search the library</source>
      <translation>서재에서 찾기</translation>
    </message>
  </context>
  <context>
    <name>Menus</name>
    <message>
      <source>&amp;Chat</source>
      <translation>대화(&amp;C)</translation>
    </message>
    <message>
      <source>&amp;Documents</source>
      <translation>문서(&amp;D)</translation>
    </message>
    <message>
      <source>&amp;File</source>
      <translation>파일(&amp;F)</translation>
    </message>
    <message>
      <source>&amp;Help</source>
      <translation>도움말(&amp;H)</translation>
    </message>
    <message>
      <source>&amp;View</source>
      <translation>보기(&amp;V)</translation>
    </message>
  </context>
  <context>
    <name>MessageView</name>
    <message>
      <source> ({0} read so far)</source>
      <translation> (지금까지 {0}개 읽음)</translation>
    </message>
    <message>
      <source>A small model to try Longshelf with. Its answers are often wrong; where it points is still useful.</source>
      <translation>Longshelf를 시험해 보기 위한 작은 모델입니다. 답이 자주 틀리지만, 가리키는 곳은 쓸모가 있습니다.</translation>
    </message>
    <message>
      <source>Answer again</source>
      <translation>다시 답하기</translation>
    </message>
    <message>
      <source>Answer exactly</source>
      <translation>정확하게 답하기</translation>
    </message>
    <message>
      <source>Ask this question again in Exact mode; this answer stays, on a branch of its own</source>
      <translation>이 질문을 정확 모드로 다시 묻습니다. 지금 답은 자기 갈래에 그대로 남습니다</translation>
    </message>
    <message>
      <source>Citations</source>
      <translation>인용</translation>
    </message>
    <message>
      <source>Copy</source>
      <translation>복사</translation>
    </message>
    <message>
      <source>Details</source>
      <translation>자세히</translation>
    </message>
    <message>
      <source>Edit and ask again</source>
      <translation>고쳐서 다시 묻기</translation>
    </message>
    <message>
      <source>Next version</source>
      <translation>다음 판</translation>
    </message>
    <message>
      <source>Not found in these documents.</source>
      <translation>이 문서들에서 찾지 못했습니다.</translation>
    </message>
    <message>
      <source>Previous version</source>
      <translation>이전 판</translation>
    </message>
    <message>
      <source>Stopped before the first word.</source>
      <translation>첫 낱말이 나오기 전에 멈췄습니다.</translation>
    </message>
    <message>
      <source>Stopped. The text so far is kept.</source>
      <translation>멈췄습니다. 여기까지의 글은 남아 있습니다.</translation>
    </message>
    <message>
      <source>The model gave an empty answer.</source>
      <translation>모델이 빈 답을 냈습니다.</translation>
    </message>
    <message>
      <source>The nearest passages:</source>
      <translation>가장 가까운 구절:</translation>
    </message>
    <message>
      <source>This answer was interrupted. The question is kept; you can ask it again.</source>
      <translation>답변이 중간에 끊겼습니다. 질문은 남아 있으니 다시 물을 수 있습니다.</translation>
    </message>
    <message>
      <source>Version {0} of {1}</source>
      <translation>{1}개 판 중 {0}번째</translation>
    </message>
    <message>
      <source>Waiting for the engine…</source>
      <translation>엔진을 기다리는 중…</translation>
    </message>
    <message>
      <source>cut at the length limit</source>
      <translation>길이 제한에서 잘림</translation>
    </message>
    <message>
      <source>from memory</source>
      <translation>기억에서</translation>
    </message>
    <message>
      <source>read for the first time together: {0}</source>
      <translation>처음으로 함께 읽음: {0}</translation>
    </message>
    <message>
      <source>read {0} of {1} parts</source>
      <translation>{1}개 부분 중 {0}개 읽음</translation>
    </message>
    <message>
      <source>trial model</source>
      <translation>시험용 모델</translation>
    </message>
  </context>
  <context>
    <name>ModeSwitch</name>
    <message>
      <source>Answer: {0}</source>
      <translation>답하는 방식: {0}</translation>
    </message>
    <message>
      <source>How to answer</source>
      <translation>답하는 방식</translation>
    </message>
  </context>
  <context>
    <name>ModelsDialog</name>
    <message numerus="yes">
      <source>%n document(s) must be read again before this model can be asked about them, unless it read them before: about {0} on the disk. What the other model remembers stays, and serves again when you go back to it.</source>
      <translation>
        <numerusform>이 모델에게 물으려면 문서 %n개를 다시 읽어야 합니다. 전에 이 모델이 읽은 문서는 예외입니다. 디스크를 약 {0} 씁니다. 다른 모델의 기억은 그대로 남아, 그 모델로 돌아가면 다시 쓰입니다.</numerusform>
      </translation>
    </message>
    <message>
      <source>&amp;Download</source>
      <translation>내려받기(&amp;D)</translation>
    </message>
    <message>
      <source>&amp;Remove…</source>
      <translation>지우기(&amp;R)…</translation>
    </message>
    <message>
      <source>&amp;Use this model</source>
      <translation>이 모델 쓰기(&amp;U)</translation>
    </message>
    <message>
      <source>A model of yours: a GGUF file, or a folder from Hugging Face with config.json, safetensors files and a tokenizer. It is copied into the home; nothing goes online.</source>
      <translation>가지고 있는 모델을 추가합니다. GGUF 파일, 또는 config.json과 safetensors 파일, 토크나이저가 든 Hugging Face 폴더입니다. 홈에 복사되며 네트워크는 쓰지 않습니다.</translation>
    </message>
    <message>
      <source>Add a &amp;GGUF file…</source>
      <translation>GGUF 파일 추가(&amp;G)…</translation>
    </message>
    <message>
      <source>Add a &amp;folder…</source>
      <translation>폴더 추가(&amp;F)…</translation>
    </message>
    <message>
      <source>Add a GGUF file</source>
      <translation>GGUF 파일 추가</translation>
    </message>
    <message>
      <source>Add a model's folder</source>
      <translation>모델 폴더 추가</translation>
    </message>
    <message>
      <source>Add it without a chat template</source>
      <translation>채팅 템플릿 없이 추가</translation>
    </message>
    <message>
      <source>Answer with {0} from now on?</source>
      <translation>이제부터 {0}(으)로 답할까요?</translation>
    </message>
    <message>
      <source>Cancel</source>
      <translation>취소</translation>
    </message>
    <message>
      <source>GGUF models (*.gguf)</source>
      <translation>GGUF 모델 (*.gguf)</translation>
    </message>
    <message>
      <source>How large its parts should be is a guess until “longshelf models calibrate {0}” in a terminal has measured it.</source>
      <translation>부분의 크기는 터미널에서 “longshelf models calibrate {0}”로 재기 전까지 어림값입니다.</translation>
    </message>
    <message>
      <source>Models</source>
      <translation>모델</translation>
    </message>
    <message>
      <source>Packed weights take less memory and answer a little worse. A GGUF that is packed stays as it is.</source>
      <translation>압축한 가중치는 메모리를 덜 쓰는 대신 답이 조금 나빠집니다. 이미 압축된 GGUF는 그대로 둡니다.</translation>
    </message>
    <message>
      <source>Progress of the installation</source>
      <translation>설치 진행률</translation>
    </message>
    <message>
      <source>Remove</source>
      <translation>지우기</translation>
    </message>
    <message>
      <source>Remove the model {0}?</source>
      <translation>{0} 모델을 지울까요?</translation>
    </message>
    <message>
      <source>Use</source>
      <translation>쓰기</translation>
    </message>
    <message>
      <source>Weights of the folder</source>
      <translation>폴더의 가중치</translation>
    </message>
    <message>
      <source>weights as they are</source>
      <translation>가중치 그대로</translation>
    </message>
    <message>
      <source>weights packed to 4 bits</source>
      <translation>가중치를 4비트로 압축</translation>
    </message>
    <message>
      <source>weights packed to 8 bits</source>
      <translation>가중치를 8비트로 압축</translation>
    </message>
    <message>
      <source>{0} are freed. What it read stays until room is needed, and chats stay.</source>
      <translation>{0}이(가) 비워집니다. 이 모델이 읽은 기억은 공간이 필요해질 때까지 남고, 대화도 남습니다.</translation>
    </message>
    <message>
      <source>{0} is installed.</source>
      <translation>{0}을(를) 설치했습니다.</translation>
    </message>
  </context>
  <context>
    <name>Modes</name>
    <message>
      <source>Every 32nd token was read both ways. By so much, on average, what the model took from the memory differed. It is not the share of answers that are wrong.</source>
      <translation>32토큰마다 한 번씩 두 방식으로 모두 읽어, 모델이 기억에서 얻은 값이 평균 얼마나 달랐는지 잰 것입니다. 틀린 답의 비율이 아닙니다.</translation>
    </message>
    <message>
      <source>Exact</source>
      <translation>정확</translation>
    </message>
    <message>
      <source>Exact: the whole memory of the chosen parts is read for every word.</source>
      <translation>정확: 낱말마다 고른 부분의 기억 전체를 읽습니다.</translation>
    </message>
    <message>
      <source>Fast</source>
      <translation>빠름</translation>
    </message>
    <message>
      <source>Fast estimates each word from part of the memory; every answer says the measured error.</source>
      <translation>빠름 모드는 기억의 일부만 읽어 낱말을 어림합니다. 잰 오차는 답마다 표시됩니다.</translation>
    </message>
    <message>
      <source>Fast estimates each word from part of the memory; measured error in this chat: {0}</source>
      <translation>빠름 모드는 기억의 일부만 읽어 낱말을 어림합니다. 이 대화에서 잰 오차: {0}</translation>
    </message>
    <message>
      <source>Fast: a part of the memory is read for each word, and the rest is estimated from it.</source>
      <translation>빠름: 낱말마다 기억의 일부만 읽고, 나머지는 그것으로 어림합니다.</translation>
    </message>
    <message>
      <source>Fast: read exactly</source>
      <translation>빠름: 정확하게 읽음</translation>
    </message>
    <message>
      <source>Fast: read exactly, since parts that were joined without reading them together can't be sampled</source>
      <translation>빠름: 함께 읽지 않고 이어 붙인 부분은 어림할 수 없어 정확하게 읽음</translation>
    </message>
    <message>
      <source>Fast: read exactly, since the graphics card holds all of it and reads it fast</source>
      <translation>빠름: 그래픽 카드에 모두 올라 있고 빨리 읽혀 정확하게 읽음</translation>
    </message>
    <message>
      <source>Fast: read exactly, since the part of the text that it needed is short</source>
      <translation>빠름: 필요한 부분의 글이 짧아 정확하게 읽음</translation>
    </message>
    <message>
      <source>Fast: read {0} of the memory for each word, measured error {1}</source>
      <translation>빠름: 낱말마다 기억을 {0} 읽음, 잰 오차 {1}</translation>
    </message>
  </context>
  <context>
    <name>QuestionBox</name>
    <message>
      <source>trial model</source>
      <translation>시험용 모델</translation>
    </message>
  </context>
  <context>
    <name>ReaderPane</name>
    <message>
      <source>Citations</source>
      <translation>인용</translation>
    </message>
    <message>
      <source>Click a number in an answer to see the passage here, or a document to read it.</source>
      <translation>답변의 번호를 누르면 그 구절이, 문서를 누르면 그 글이 여기 보입니다.</translation>
    </message>
    <message>
      <source>File</source>
      <translation>파일</translation>
    </message>
    <message>
      <source>Place in the document</source>
      <translation>문서 안의 위치</translation>
    </message>
  </context>
  <context>
    <name>SettingsDialog</name>
    <message>
      <source>&amp;Language</source>
      <translation>언어(&amp;L)</translation>
    </message>
    <message>
      <source>&amp;Theme</source>
      <translation>테마(&amp;T)</translation>
    </message>
    <message>
      <source>As the system</source>
      <translation>시스템 설정대로</translation>
    </message>
    <message>
      <source>Automatic</source>
      <translation>자동</translation>
    </message>
    <message>
      <source>Dark</source>
      <translation>어둡게</translation>
    </message>
    <message>
      <source>Documents {0} · models {1} · free on this disk {2}</source>
      <translation>문서 {0} · 모델 {1} · 이 디스크의 남은 공간 {2}</translation>
    </message>
    <message>
      <source>Home folder</source>
      <translation>홈 폴더</translation>
    </message>
    <message>
      <source>How many processor cores the engine uses. Takes effect with the next question.</source>
      <translation>엔진이 쓰는 프로세서 코어 수입니다. 다음 질문부터 적용됩니다.</translation>
    </message>
    <message>
      <source>Language</source>
      <translation>언어</translation>
    </message>
    <message>
      <source>Light</source>
      <translation>밝게</translation>
    </message>
    <message>
      <source>Settings</source>
      <translation>설정</translation>
    </message>
    <message>
      <source>Storage used</source>
      <translation>쓰고 있는 공간</translation>
    </message>
    <message>
      <source>Th&amp;reads</source>
      <translation>스레드(&amp;R)</translation>
    </message>
    <message>
      <source>The language changes at the next start.</source>
      <translation>언어는 다음에 켤 때 바뀝니다.</translation>
    </message>
    <message>
      <source>Theme</source>
      <translation>테마</translation>
    </message>
    <message>
      <source>Threads</source>
      <translation>스레드</translation>
    </message>
  </context>
  <context>
    <name>ShortcutsDialog</name>
    <message>
      <source>Break the line in a question</source>
      <translation>질문 안에서 줄을 바꿉니다</translation>
    </message>
    <message>
      <source>Command</source>
      <translation>명령</translation>
    </message>
    <message>
      <source>Key</source>
      <translation>키</translation>
    </message>
    <message>
      <source>Keyboard shortcuts</source>
      <translation>단축키</translation>
    </message>
    <message>
      <source>New line</source>
      <translation>줄 바꿈</translation>
    </message>
    <message>
      <source>Send</source>
      <translation>보내기</translation>
    </message>
    <message>
      <source>Send the question</source>
      <translation>질문을 보냅니다</translation>
    </message>
    <message>
      <source>What it does</source>
      <translation>하는 일</translation>
    </message>
  </context>
  <context>
    <name>SkippedDialog</name>
    <message numerus="yes">
      <source>%Ln file(s) were skipped.</source>
      <translation>
        <numerusform>파일 %Ln개가 제외되었습니다.</numerusform>
      </translation>
    </message>
    <message>
      <source>Skipped in “{0}”</source>
      <translation>“{0}”에서 제외된 것</translation>
    </message>
  </context>
  <context>
    <name>StartPage</name>
    <message>
      <source>Add a book, a contract, a folder of code</source>
      <translation>책, 계약서, 코드 폴더를 추가해 보세요</translation>
    </message>
    <message numerus="yes">
      <source>Ask about %n document(s)</source>
      <translation>
        <numerusform>문서 %n개에 질문하기</numerusform>
      </translation>
    </message>
    <message>
      <source>Ask about “{0}”</source>
      <translation>“{0}”에 질문하기</translation>
    </message>
    <message>
      <source>Ask your documents</source>
      <translation>문서에 질문하기</translation>
    </message>
    <message>
      <source>Cancel</source>
      <translation>취소</translation>
    </message>
    <message>
      <source>Download and install</source>
      <translation>내려받아 설치</translation>
    </message>
    <message>
      <source>Drop files or a folder anywhere on this window, paste a path, or choose files. Plain text, Markdown and source code are read. The document is read once; you can ask as soon as its first part is finished.</source>
      <translation>파일이나 폴더를 이 창 어디에든 끌어다 놓거나, 경로를 붙여 넣거나, 파일을 고르세요. 일반 텍스트, Markdown, 소스 코드를 읽습니다. 문서는 한 번만 읽으며, 첫 부분을 다 읽는 대로 질문할 수 있습니다.</translation>
    </message>
    <message>
      <source>It is a trial model: small, quick, and English only. It finds places well, but its answers are often wrong, and it can't reason, calculate or read other languages well. Larger models can be installed later.</source>
      <translation>시험용 모델입니다. 작고 빠르며 영어만 압니다. 어디에 있는지는 잘 찾지만 답은 자주 틀리고, 추론이나 계산을 하거나 다른 언어를 읽지는 못합니다. 더 큰 모델은 나중에 설치할 수 있습니다.</translation>
    </message>
    <message>
      <source>Longshelf</source>
      <translation>Longshelf</translation>
    </message>
    <message>
      <source>Longshelf reads a long document once, remembers it on this computer and answers questions about it, with the place in the source beside every answer. Nothing leaves this computer.</source>
      <translation>Longshelf는 긴 문서를 한 번 읽어 이 컴퓨터에 기억해 두고, 그 문서에 대한 질문에 원문의 위치와 함께 답합니다. 아무것도 이 컴퓨터 밖으로 나가지 않습니다.</translation>
    </message>
    <message>
      <source>Progress of the installation</source>
      <translation>설치 진행 상황</translation>
    </message>
    <message>
      <source>Start with the handbook</source>
      <translation>안내서로 시작하기</translation>
    </message>
    <message>
      <source>Starting the download…</source>
      <translation>내려받기를 시작하는 중…</translation>
    </message>
    <message>
      <source>Starting the engine…</source>
      <translation>엔진을 시작하는 중…</translation>
    </message>
    <message>
      <source>The answer shows where it stands in the text.</source>
      <translation>답변에는 글의 어디에 나오는지가 함께 표시됩니다.</translation>
    </message>
    <message>
      <source>The trial model reads English, so this is the English handbook. The Help menu has it in your language.</source>
      <translation>시험용 모델은 영어를 읽으므로 영어 안내서를 열었습니다. 한국어 안내서는 도움말 메뉴에 있습니다.</translation>
    </message>
    <message>
      <source>To begin, it needs a language model: SmolLM2-135M-Instruct (licence Apache-2.0), a download of about 93 MB that takes about 100 MB on disk. It is the only time the network is used.</source>
      <translation>시작하려면 언어 모델이 필요합니다: SmolLM2-135M-Instruct (라이선스 Apache-2.0). 약 93 MB를 내려받고 디스크를 약 100 MB 씁니다. 네트워크를 쓰는 것은 이때뿐입니다.</translation>
    </message>
    <message>
      <source>Use a model of yours…</source>
      <translation>가지고 있는 모델 쓰기…</translation>
    </message>
    <message>
      <source>Welcome to Longshelf</source>
      <translation>Longshelf에 오신 것을 환영합니다</translation>
    </message>
  </context>
  <context>
    <name>StatusLine</name>
    <message numerus="yes">
      <source>%n more waiting</source>
      <translation>
        <numerusform>%n개 더 기다림</numerusform>
      </translation>
    </message>
    <message>
      <source>Downloading a model: the network is used until this is done</source>
      <translation>모델을 내려받는 중: 끝날 때까지 네트워크를 씁니다</translation>
    </message>
    <message>
      <source>Offline</source>
      <translation>오프라인</translation>
    </message>
    <message>
      <source>Starting the engine…</source>
      <translation>엔진을 시작하는 중…</translation>
    </message>
    <message>
      <source>The engine is not running</source>
      <translation>엔진이 꺼져 있습니다</translation>
    </message>
    <message>
      <source>answering</source>
      <translation>답하는 중</translation>
    </message>
    <message>
      <source>loading the model</source>
      <translation>모델을 불러오는 중</translation>
    </message>
    <message>
      <source>reading {0}</source>
      <translation>{0} 읽는 중</translation>
    </message>
    <message>
      <source>ready</source>
      <translation>준비됨</translation>
    </message>
  </context>
  <context>
    <name>TextView</name>
    <message>
      <source>Text of the document</source>
      <translation>문서의 글</translation>
    </message>
  </context>
  <context>
    <name>Transcript</name>
    <message>
      <source>Chat</source>
      <translation>대화</translation>
    </message>
    <message>
      <source>Jump to the latest</source>
      <translation>맨 끝으로</translation>
    </message>
  </context>
  <context>
    <name>Trouble</name>
    <message>
      <source>A model of this name is installed already.</source>
      <translation>같은 이름의 모델이 이미 설치되어 있습니다.</translation>
    </message>
    <message>
      <source>A piece of a document's memory is damaged.</source>
      <translation>문서 기억의 한 조각이 손상되었습니다.</translation>
    </message>
    <message>
      <source>A piece of a document's memory is missing.</source>
      <translation>문서 기억의 한 조각이 없습니다.</translation>
    </message>
    <message>
      <source>A scan needs text recognition first.</source>
      <translation>스캔한 문서는 먼저 글자 인식이 필요합니다.</translation>
    </message>
    <message>
      <source>Add plain text, Markdown or source code.</source>
      <translation>일반 텍스트, Markdown, 소스 코드를 추가하세요.</translation>
    </message>
    <message>
      <source>Add the document again.</source>
      <translation>문서를 다시 추가하세요.</translation>
    </message>
    <message>
      <source>Another program is using this home.</source>
      <translation>다른 프로그램이 이 홈 폴더를 쓰고 있습니다.</translation>
    </message>
    <message>
      <source>Ask again when its first part is finished.</source>
      <translation>첫 부분을 다 읽으면 다시 질문하세요.</translation>
    </message>
    <message>
      <source>Check its permissions.</source>
      <translation>파일의 권한을 확인하세요.</translation>
    </message>
    <message>
      <source>Check the connection and try again.</source>
      <translation>연결을 확인하고 다시 시도하세요.</translation>
    </message>
    <message>
      <source>Check whether it was moved or deleted.</source>
      <translation>옮겨졌거나 지워지지 않았는지 확인하세요.</translation>
    </message>
    <message>
      <source>Check whether its disk is connected.</source>
      <translation>디스크가 연결되어 있는지 확인하세요.</translation>
    </message>
    <message>
      <source>Choose a GGUF file, or a folder with config.json, safetensors files and a tokenizer.</source>
      <translation>GGUF 파일이나, config.json과 safetensors 파일, 토크나이저가 든 폴더를 고르세요.</translation>
    </message>
    <message>
      <source>Choose a Llama, Mistral, Qwen, Phi, SmolLM or Gemma model.</source>
      <translation>Llama, Mistral, Qwen, Phi, SmolLM, Gemma 모델 가운데서 고르세요.</translation>
    </message>
    <message>
      <source>Choose a version with safetensors files, or its GGUF.</source>
      <translation>safetensors 파일이 있는 판이나 GGUF를 고르세요.</translation>
    </message>
    <message>
      <source>Choose an instruct (chat) version of the model, or add it without a template.</source>
      <translation>모델의 instruct(채팅) 판을 고르거나, 템플릿 없이 추가하세요.</translation>
    </message>
    <message>
      <source>Choose another one.</source>
      <translation>다른 모델을 고르세요.</translation>
    </message>
    <message>
      <source>Choose another with --home.</source>
      <translation>--home으로 다른 폴더를 고르세요.</translation>
    </message>
    <message>
      <source>Close it and try again.</source>
      <translation>그 프로그램을 닫고 다시 시도하세요.</translation>
    </message>
    <message>
      <source>Close other programs, or choose a smaller model.</source>
      <translation>다른 프로그램을 닫거나 더 작은 모델을 고르세요.</translation>
    </message>
    <message>
      <source>Documents, chats and your question are kept.</source>
      <translation>문서와 대화, 질문은 그대로 남아 있습니다.</translation>
    </message>
    <message>
      <source>Download the missing files into the same folder.</source>
      <translation>빠진 파일을 같은 폴더에 내려받으세요.</translation>
    </message>
    <message>
      <source>Free some space, then resume; what is read is kept.</source>
      <translation>공간을 비운 뒤 계속하세요. 읽은 것은 남아 있습니다.</translation>
    </message>
    <message>
      <source>Install one from the start page.</source>
      <translation>시작 화면에서 설치하세요.</translation>
    </message>
    <message>
      <source>Install the model again.</source>
      <translation>모델을 다시 설치하세요.</translation>
    </message>
    <message>
      <source>It is not used. Read the document again.</source>
      <translation>그 조각은 쓰지 않습니다. 문서를 다시 읽으세요.</translation>
    </message>
    <message>
      <source>It is started again; ask the question once more.</source>
      <translation>다시 시작하니 질문을 한 번 더 해 주세요.</translation>
    </message>
    <message>
      <source>No model is installed.</source>
      <translation>설치된 모델이 없습니다.</translation>
    </message>
    <message>
      <source>Nothing of it has been read yet.</source>
      <translation>아직 읽은 부분이 없습니다.</translation>
    </message>
    <message>
      <source>Read the document again.</source>
      <translation>문서를 다시 읽으세요.</translation>
    </message>
    <message>
      <source>Remove it first.</source>
      <translation>먼저 그 모델을 지우세요.</translation>
    </message>
    <message>
      <source>Rename its file or folder.</source>
      <translation>파일이나 폴더의 이름을 바꾸세요.</translation>
    </message>
    <message>
      <source>Run “longshelf doctor --repair” in a terminal.</source>
      <translation>터미널에서 “longshelf doctor --repair”를 실행하세요.</translation>
    </message>
    <message>
      <source>Save it as UTF-8 and add it again.</source>
      <translation>UTF-8로 저장해 다시 추가하세요.</translation>
    </message>
    <message>
      <source>Shorten it.</source>
      <translation>질문을 줄이세요.</translation>
    </message>
    <message>
      <source>Some of the model's files are missing.</source>
      <translation>모델의 파일 일부가 없습니다.</translation>
    </message>
    <message>
      <source>Something in Longshelf went wrong.</source>
      <translation>Longshelf에 문제가 생겼습니다.</translation>
    </message>
    <message>
      <source>Split it into smaller files.</source>
      <translation>더 작은 파일로 나누세요.</translation>
    </message>
    <message>
      <source>The catalog is damaged.</source>
      <translation>목록 파일이 손상되었습니다.</translation>
    </message>
    <message>
      <source>The disk is full.</source>
      <translation>디스크가 가득 찼습니다.</translation>
    </message>
    <message>
      <source>The download failed.</source>
      <translation>내려받지 못했습니다.</translation>
    </message>
    <message>
      <source>The encoding of the text was not recognised.</source>
      <translation>글의 인코딩을 알아내지 못했습니다.</translation>
    </message>
    <message>
      <source>The engine stopped unexpectedly.</source>
      <translation>엔진이 예기치 않게 멈췄습니다.</translation>
    </message>
    <message>
      <source>The file can't be opened.</source>
      <translation>파일을 열 수 없습니다.</translation>
    </message>
    <message>
      <source>The file is too large.</source>
      <translation>파일이 너무 큽니다.</translation>
    </message>
    <message>
      <source>The home folder can't be used.</source>
      <translation>홈 폴더를 쓸 수 없습니다.</translation>
    </message>
    <message>
      <source>The kept text of this document is missing.</source>
      <translation>이 문서의 보관된 글이 없습니다.</translation>
    </message>
    <message>
      <source>The model can't have this name.</source>
      <translation>모델에 이 이름을 쓸 수 없습니다.</translation>
    </message>
    <message>
      <source>The model has no chat template.</source>
      <translation>모델에 채팅 템플릿이 없습니다.</translation>
    </message>
    <message>
      <source>The model takes more memory than is free.</source>
      <translation>남은 메모리보다 모델이 더 큽니다.</translation>
    </message>
    <message>
      <source>The model's files are damaged.</source>
      <translation>모델 파일이 손상되었습니다.</translation>
    </message>
    <message>
      <source>The model's weights are pickled, which is code that would be run.</source>
      <translation>모델의 가중치가 pickle 형식입니다. 읽으면 코드가 실행될 수 있습니다.</translation>
    </message>
    <message>
      <source>The question is too long.</source>
      <translation>질문이 너무 깁니다.</translation>
    </message>
    <message>
      <source>The store can't be reached.</source>
      <translation>저장소에 접근할 수 없습니다.</translation>
    </message>
    <message>
      <source>There is no such model.</source>
      <translation>그런 모델이 없습니다.</translation>
    </message>
    <message>
      <source>There is no text in it.</source>
      <translation>글이 들어 있지 않습니다.</translation>
    </message>
    <message>
      <source>This file or entry was not found.</source>
      <translation>파일이나 항목을 찾을 수 없습니다.</translation>
    </message>
    <message>
      <source>This format can't be read yet.</source>
      <translation>아직 읽을 수 없는 형식입니다.</translation>
    </message>
    <message>
      <source>This home was made by a newer version.</source>
      <translation>이 홈 폴더는 더 새로운 버전이 만든 것입니다.</translation>
    </message>
    <message>
      <source>This is not a model that can be read.</source>
      <translation>읽을 수 있는 모델이 아닙니다.</translation>
    </message>
    <message>
      <source>This is not a text file.</source>
      <translation>글 파일이 아닙니다.</translation>
    </message>
    <message>
      <source>This kind of model can't be run.</source>
      <translation>이런 종류의 모델은 쓸 수 없습니다.</translation>
    </message>
    <message>
      <source>This version reads plain text, Markdown and source code.</source>
      <translation>이 버전은 일반 텍스트, Markdown, 소스 코드를 읽습니다.</translation>
    </message>
    <message>
      <source>Try again.</source>
      <translation>다시 시도하세요.</translation>
    </message>
    <message>
      <source>Try again. If it happens again, report the details.</source>
      <translation>다시 시도해 보고, 또 생기면 자세한 내용을 알려 주세요.</translation>
    </message>
    <message>
      <source>Update Longshelf.</source>
      <translation>Longshelf를 업데이트하세요.</translation>
    </message>
    <message>
      <source>What was downloaded is damaged.</source>
      <translation>내려받은 것이 손상되었습니다.</translation>
    </message>
  </context>
  <context>
    <name>TroubleBar</name>
    <message>
      <source>Copy the details</source>
      <translation>자세한 내용 복사</translation>
    </message>
    <message>
      <source>Details</source>
      <translation>자세히</translation>
    </message>
    <message>
      <source>Dismiss</source>
      <translation>닫기</translation>
    </message>
  </context>
  <context>
    <name>TwoLines</name>
    <message>
      <source>Name of the chat</source>
      <translation>대화 이름</translation>
    </message>
  </context>
  <context>
    <name>Window</name>
    <message>
      <source>About Longshelf</source>
      <translation>Longshelf 정보</translation>
    </message>
    <message>
      <source>Add a folder</source>
      <translation>폴더 추가</translation>
    </message>
    <message>
      <source>Add documents</source>
      <translation>문서 추가</translation>
    </message>
    <message>
      <source>Copy a file in the file manager, or its path, and try again.</source>
      <translation>파일 관리자에서 파일이나 그 경로를 복사한 뒤 다시 시도하세요.</translation>
    </message>
    <message>
      <source>Export chat</source>
      <translation>대화 내보내기</translation>
    </message>
    <message>
      <source>It stopped several times and was not started again.</source>
      <translation>여러 번 멈춰서 다시 시작하지 않았습니다.</translation>
    </message>
    <message>
      <source>JSON (*.json)</source>
      <translation>JSON (*.json)</translation>
    </message>
    <message>
      <source>Licence: Apache-2.0</source>
      <translation>라이선스: Apache-2.0</translation>
    </message>
    <message>
      <source>Markdown (*.md)</source>
      <translation>Markdown (*.md)</translation>
    </message>
    <message>
      <source>No path was copied.</source>
      <translation>복사해 둔 경로가 없습니다.</translation>
    </message>
    <message>
      <source>Reads long documents once, remembers them, and answers with the place in the source. Offline.</source>
      <translation>긴 문서를 한 번 읽어 기억하고, 원문의 위치와 함께 답합니다. 오프라인으로.</translation>
    </message>
    <message>
      <source>Start the engine</source>
      <translation>엔진 시작</translation>
    </message>
    <message>
      <source>{0} can't be written: {1}.</source>
      <translation>{0}에 쓸 수 없습니다: {1}.</translation>
    </message>
  </context>
  <context>
    <name>Words</name>
    <message numerus="yes">
      <source>%Ln token(s)</source>
      <translation>
        <numerusform>%Ln토큰</numerusform>
      </translation>
    </message>
    <message>
      <source>Arabic</source>
      <translation>아랍어</translation>
    </message>
    <message>
      <source>Checking the download</source>
      <translation>내려받은 것을 확인하는 중</translation>
    </message>
    <message>
      <source>Chinese</source>
      <translation>중국어</translation>
    </message>
    <message>
      <source>Converting the model</source>
      <translation>모델을 변환하는 중</translation>
    </message>
    <message>
      <source>Damaged</source>
      <translation>손상됨</translation>
    </message>
    <message>
      <source>Downloading</source>
      <translation>내려받는 중</translation>
    </message>
    <message>
      <source>Expect wrong answers. A model that was trained on such texts answers better.</source>
      <translation>틀린 답이 많을 수 있습니다. 이런 글을 배운 모델이 더 잘 답합니다.</translation>
    </message>
    <message>
      <source>Failed</source>
      <translation>실패</translation>
    </message>
    <message>
      <source>Getting the model ready</source>
      <translation>모델을 준비하는 중</translation>
    </message>
    <message>
      <source>Greek</source>
      <translation>그리스어</translation>
    </message>
    <message>
      <source>Hebrew</source>
      <translation>히브리어</translation>
    </message>
    <message>
      <source>Hindi</source>
      <translation>힌디어</translation>
    </message>
    <message>
      <source>Japanese</source>
      <translation>일본어</translation>
    </message>
    <message>
      <source>Korean</source>
      <translation>한국어</translation>
    </message>
    <message>
      <source>No text</source>
      <translation>글 없음</translation>
    </message>
    <message>
      <source>Paused</source>
      <translation>멈춤</translation>
    </message>
    <message>
      <source>Preparing the vocabulary</source>
      <translation>어휘를 준비하는 중</translation>
    </message>
    <message>
      <source>Queued</source>
      <translation>대기 중</translation>
    </message>
    <message>
      <source>Read by another model, not by this one</source>
      <translation>다른 모델이 읽음, 이 모델은 아직 읽지 않음</translation>
    </message>
    <message>
      <source>Reading the text</source>
      <translation>글을 읽는 중</translation>
    </message>
    <message>
      <source>Ready</source>
      <translation>준비됨</translation>
    </message>
    <message>
      <source>Remembering {0}</source>
      <translation>기억하는 중 {0}</translation>
    </message>
    <message>
      <source>Russian</source>
      <translation>러시아어</translation>
    </message>
    <message>
      <source>Skipped</source>
      <translation>제외됨</translation>
    </message>
    <message>
      <source>Thai</source>
      <translation>태국어</translation>
    </message>
    <message>
      <source>a download of {0}</source>
      <translation>내려받기 {0}</translation>
    </message>
    <message>
      <source>a link to elsewhere</source>
      <translation>다른 곳으로 가는 링크</translation>
    </message>
    <message>
      <source>about {0}</source>
      <translation>약 {0}</translation>
    </message>
    <message>
      <source>added without reading</source>
      <translation>읽지 않고 추가함</translation>
    </message>
    <message>
      <source>can't be opened: permission</source>
      <translation>열 수 없음: 권한</translation>
    </message>
    <message>
      <source>empty</source>
      <translation>비어 있음</translation>
    </message>
    <message>
      <source>encoding not recognised</source>
      <translation>인코딩을 알 수 없음</translation>
    </message>
    <message>
      <source>in use</source>
      <translation>사용 중</translation>
    </message>
    <message>
      <source>its memory was given up, its text is kept</source>
      <translation>기억은 지웠고 글은 남아 있음</translation>
    </message>
    <message>
      <source>left out by the folder's ignore rules</source>
      <translation>폴더의 제외 규칙에 걸림</translation>
    </message>
    <message>
      <source>line {0}</source>
      <translation>{0}행</translation>
    </message>
    <message>
      <source>looks like a secret (key, password)</source>
      <translation>비밀(키, 암호)로 보임</translation>
    </message>
    <message>
      <source>needs {0} of memory, this machine has {1}</source>
      <translation>메모리 {0} 필요, 이 컴퓨터에는 {1}</translation>
    </message>
    <message>
      <source>not a regular file</source>
      <translation>보통 파일이 아님</translation>
    </message>
    <message>
      <source>not a text</source>
      <translation>글이 아님</translation>
    </message>
    <message>
      <source>page {0}</source>
      <translation>{0}쪽</translation>
    </message>
    <message>
      <source>reading was cancelled</source>
      <translation>읽기를 취소함</translation>
    </message>
    <message>
      <source>reads {0} at once</source>
      <translation>한 번에 {0}까지 읽음</translation>
    </message>
    <message>
      <source>runs in {0} of memory</source>
      <translation>메모리 {0}로 동작</translation>
    </message>
    <message>
      <source>the model reads it poorly</source>
      <translation>모델이 이 글을 잘 읽지 못함</translation>
    </message>
    <message>
      <source>the model reads {0} poorly</source>
      <translation>모델이 {0} 글을 잘 읽지 못함</translation>
    </message>
    <message>
      <source>the source file is gone, its text is kept</source>
      <translation>원본 파일이 없어졌지만 글은 남아 있음</translation>
    </message>
    <message>
      <source>too large</source>
      <translation>너무 큼</translation>
    </message>
    <message>
      <source>trial model</source>
      <translation>시험용 모델</translation>
    </message>
    <message>
      <source>under {0}</source>
      <translation>{0} 미만</translation>
    </message>
    <message>
      <source>{0} %</source>
      <translation>{0} %</translation>
    </message>
    <message>
      <source>{0} for 100 pages</source>
      <translation>100쪽에 {0}</translation>
    </message>
    <message>
      <source>{0} h</source>
      <translation>{0}시간</translation>
    </message>
    <message>
      <source>{0} h {1} min</source>
      <translation>{0}시간 {1}분</translation>
    </message>
    <message>
      <source>{0} left</source>
      <translation>{0} 남음</translation>
    </message>
    <message>
      <source>{0} min</source>
      <translation>{0}분</translation>
    </message>
    <message>
      <source>{0} s</source>
      <translation>{0}초</translation>
    </message>
  </context>
  <context>
    <name>_Gutter</name>
    <message>
      <source>Line numbers</source>
      <translation>행 번호</translation>
    </message>
  </context>
  <context>
    <name>_Popup</name>
    <message>
      <source>All documents</source>
      <translation>모든 문서</translation>
    </message>
    <message>
      <source>Documents</source>
      <translation>문서</translation>
    </message>
    <message>
      <source>Documents the question is about</source>
      <translation>질문할 문서</translation>
    </message>
    <message>
      <source>Search</source>
      <translation>찾기</translation>
    </message>
    <message>
      <source>Search documents</source>
      <translation>문서 찾기</translation>
    </message>
  </context>
</TS>
