/* Runs serving_default of a SavedModel in TensorFlow's C runtime, without Python.

   run_model VERSION_DIR INPUT TRANSLATIONS SCORES OP_LIBRARY... < texts

   INPUT, TRANSLATIONS and SCORES are the names of the signature's tensors, each
   OPERATION:INDEX. Standard input contains one text per line. Each output line has the
   score, a tab and the translation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api.h>
#include <tensorflow/c/tf_tstring.h>

#define MOST_TEXTS 64
#define MOST_BYTES 4096

static void check(TF_Status *status, const char *what) {
  if (TF_GetCode(status) != TF_OK) {
    fprintf(stderr, "%s: %s\n", what, TF_Message(status));
    exit(1);
  }
}

static TF_Output tensor_named(TF_Graph *graph, char *name) {
  char *colon = strchr(name, ':');
  TF_Output output = {NULL, atoi(colon + 1)};
  *colon = '\0';
  output.oper = TF_GraphOperationByName(graph, name);
  if (output.oper == NULL) {
    fprintf(stderr, "no operation %s\n", name);
    exit(1);
  }
  return output;
}

int main(int argc, char **argv) {
  TF_Status *status = TF_NewStatus();
  for (int n = 5; n < argc; n++) {
    TF_LoadLibrary(argv[n], status);
    check(status, argv[n]);
  }
  TF_Graph *graph = TF_NewGraph();
  TF_SessionOptions *options = TF_NewSessionOptions();
  const char *tags[] = {"serve"};
  TF_Session *session = TF_LoadSessionFromSavedModel(
      options, NULL, argv[1], tags, 1, graph, NULL, status);
  check(status, "load");

  static char line[MOST_TEXTS][MOST_BYTES];
  int64_t count = 0;
  while (count < MOST_TEXTS && fgets(line[count], MOST_BYTES, stdin)) {
    line[count][strcspn(line[count], "\n")] = '\0';
    count++;
  }
  TF_Tensor *texts =
      TF_AllocateTensor(TF_STRING, &count, 1, count * sizeof(TF_TString));
  TF_TString *strings = TF_TensorData(texts);
  for (int64_t n = 0; n < count; n++) {
    TF_TString_Init(&strings[n]);
    TF_TString_Copy(&strings[n], line[n], strlen(line[n]));
  }

  TF_Output input = tensor_named(graph, argv[2]);
  TF_Output outputs[] = {tensor_named(graph, argv[3]),
                         tensor_named(graph, argv[4])};
  TF_Tensor *values[2];
  TF_SessionRun(session, NULL, &input, &texts, 1, outputs, values, 2, NULL, 0,
                NULL, status);
  check(status, "run");
  const TF_TString *translations = TF_TensorData(values[0]);
  const float *scores = TF_TensorData(values[1]);
  for (int64_t n = 0; n < TF_Dim(values[0], 0); n++) {
    printf("%.6f\t%.*s\n", scores[n],
           (int)TF_TString_GetSize(&translations[n]),
           TF_TString_GetDataPointer(&translations[n]));
  }
  TF_CloseSession(session, status);
  check(status, "close");
  return 0;
}
