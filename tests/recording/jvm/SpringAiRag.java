package app;

import org.springframework.ai.chat.client.advisor.api.Advisor;
import org.springframework.ai.chat.client.advisor.vectorstore.QuestionAnswerAdvisor;
import org.springframework.ai.vectorstore.SearchRequest;
import org.springframework.ai.vectorstore.VectorStore;

/** Questions answered from a vector store (spring-ai-advisors-vector-store). */
final class SpringAiRag {
    static Advisor over(VectorStore store) {
        return QuestionAnswerAdvisor.builder(store).searchRequest(SearchRequest.builder().topK(2).build()).build();
    }
}
