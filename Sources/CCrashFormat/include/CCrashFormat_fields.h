// Where the fields of the record's larger structs are, as numbers.
//
// For readers in Swift: it imports a char array as a tuple of that many elements, and a key path into a tuple of 4096 is
// no way to learn an offset. The compiler derives the numbers from the structs, so that there is one description still.

#ifndef CCRASHFORMAT_FIELDS_H
#define CCRASHFORMAT_FIELDS_H

#include "CCrashFormat.h"

enum {
  CRASH_RECORD_MAX_FILE_BYTES = CRASH_RECORD_MAX_FILE_SIZE,  // an expression, which Swift does not import as a macro

  CRASH_HEADER_VERSION_OFFSET = offsetof(struct crash_record_header, version),
  CRASH_HEADER_HEADER_SIZE_OFFSET = offsetof(struct crash_record_header, header_size),
  CRASH_HEADER_FILE_SIZE_OFFSET = offsetof(struct crash_record_header, file_size),
  CRASH_HEADER_ARCHITECTURE_OFFSET = offsetof(struct crash_record_header, architecture),
  CRASH_HEADER_SECTION_COUNT_OFFSET = offsetof(struct crash_record_header, section_count),
  CRASH_HEADER_RUN_ID_OFFSET = offsetof(struct crash_record_header, run_id),
  CRASH_HEADER_REPORT_ENTROPY_OFFSET = offsetof(struct crash_record_header, report_entropy),
  CRASH_HEADER_FIXED_CHECKSUM_OFFSET = offsetof(struct crash_record_header, fixed_checksum),
  CRASH_HEADER_RUN_STATE_OFFSET = offsetof(struct crash_record_header, run_state),
  CRASH_HEADER_CRASH_STATE_OFFSET = offsetof(struct crash_record_header, crash_state),
  CRASH_HEADER_CRASH_THREAD_OFFSET = offsetof(struct crash_record_header, crash_thread),
  CRASH_HEADER_SECTIONS_OFFSET = offsetof(struct crash_record_header, sections),

  CRASH_PROCESS_SIZE = sizeof(struct crash_record_process),
  CRASH_PROCESS_PID_OFFSET = offsetof(struct crash_record_process, pid),
  CRASH_PROCESS_START_TICKS_OFFSET = offsetof(struct crash_record_process, start_ticks),
  CRASH_PROCESS_START_REALTIME_OFFSET = offsetof(struct crash_record_process, start_realtime_ns),
  CRASH_PROCESS_START_BOOTTIME_OFFSET = offsetof(struct crash_record_process, start_boottime_ns),
  CRASH_PROCESS_BOOT_ID_OFFSET = offsetof(struct crash_record_process, boot_id),
  CRASH_PROCESS_EXECUTABLE_LENGTH_OFFSET = offsetof(struct crash_record_process, executable_length),
  CRASH_PROCESS_HOST_LENGTH_OFFSET = offsetof(struct crash_record_process, host_length),
  CRASH_PROCESS_SYSTEM_LENGTH_OFFSET = offsetof(struct crash_record_process, system_length),
  CRASH_PROCESS_HOST_OFFSET = offsetof(struct crash_record_process, host),
  CRASH_PROCESS_HOST_SIZE = sizeof(((struct crash_record_process *)0)->host),
  CRASH_PROCESS_SYSTEM_OFFSET = offsetof(struct crash_record_process, system),
  CRASH_PROCESS_SYSTEM_SIZE = sizeof(((struct crash_record_process *)0)->system),
  CRASH_PROCESS_EXECUTABLE_OFFSET = offsetof(struct crash_record_process, executable),
  CRASH_PROCESS_EXECUTABLE_SIZE = sizeof(((struct crash_record_process *)0)->executable),

  CRASH_TEXT_SEQUENCE_OFFSET = offsetof(struct crash_record_text64, sequence),
  CRASH_TEXT_LENGTH_OFFSET = offsetof(struct crash_record_text64, length),
  CRASH_TEXT_BYTES_OFFSET = offsetof(struct crash_record_text64, bytes),

  CRASH_SCOPE_SIZE = sizeof(struct crash_record_scope),
  CRASH_SCOPE_SERVICE_OFFSET = offsetof(struct crash_record_scope, service),
  CRASH_SCOPE_RELEASE_OFFSET = offsetof(struct crash_record_scope, release),
  CRASH_SCOPE_ENVIRONMENT_OFFSET = offsetof(struct crash_record_scope, environment),
  CRASH_SCOPE_USER_OFFSET = offsetof(struct crash_record_scope, user),
  CRASH_SCOPE_OPERATION_OFFSET = offsetof(struct crash_record_scope, operation),
  CRASH_SCOPE_TAGS_OFFSET = offsetof(struct crash_record_scope, tags),

  CRASH_TAG_SIZE = sizeof(struct crash_record_tag),
  CRASH_TAG_KEY_LENGTH_OFFSET = offsetof(struct crash_record_tag, key_length),
  CRASH_TAG_VALUE_LENGTH_OFFSET = offsetof(struct crash_record_tag, value_length),
  CRASH_TAG_KEY_OFFSET = offsetof(struct crash_record_tag, key),
  CRASH_TAG_KEY_SIZE = sizeof(((struct crash_record_tag *)0)->key),
  CRASH_TAG_VALUE_OFFSET = offsetof(struct crash_record_tag, value),
  CRASH_TAG_VALUE_SIZE = sizeof(((struct crash_record_tag *)0)->value),

  CRASH_BREADCRUMBS_SIZE = sizeof(struct crash_record_breadcrumbs),
  CRASH_BREADCRUMBS_RING_OFFSET = offsetof(struct crash_record_breadcrumbs, ring),
  CRASH_BREADCRUMB_SIZE = sizeof(struct crash_record_breadcrumb),
  CRASH_BREADCRUMB_REALTIME_OFFSET = offsetof(struct crash_record_breadcrumb, realtime_ns),
  CRASH_BREADCRUMB_CATEGORY_LENGTH_OFFSET = offsetof(struct crash_record_breadcrumb, category_length),
  CRASH_BREADCRUMB_MESSAGE_LENGTH_OFFSET = offsetof(struct crash_record_breadcrumb, message_length),
  CRASH_BREADCRUMB_CATEGORY_OFFSET = offsetof(struct crash_record_breadcrumb, category),
  CRASH_BREADCRUMB_CATEGORY_SIZE = sizeof(((struct crash_record_breadcrumb *)0)->category),
  CRASH_BREADCRUMB_MESSAGE_OFFSET = offsetof(struct crash_record_breadcrumb, message),
  CRASH_BREADCRUMB_MESSAGE_SIZE = sizeof(((struct crash_record_breadcrumb *)0)->message),

  CRASH_MESSAGE_SIZE = sizeof(struct crash_record_message),
  CRASH_MESSAGE_FLAGS_OFFSET = offsetof(struct crash_record_message, flags),
  CRASH_MESSAGE_LENGTH_OFFSET = offsetof(struct crash_record_message, length),
  CRASH_MESSAGE_BYTES_OFFSET = offsetof(struct crash_record_message, bytes),

  CRASH_REGISTERS_SIZE = sizeof(struct crash_record_registers),
  CRASH_REGISTERS_VALUES_OFFSET = offsetof(struct crash_record_registers, values),

  CRASH_THREAD_NAME_OFFSET = offsetof(struct crash_record_thread, name),
  CRASH_THREAD_NAME_SIZE = sizeof(((struct crash_record_thread *)0)->name),

  CRASH_TASK_SIZE = sizeof(struct crash_record_task),
  CRASH_TASK_NAME_LENGTH_OFFSET = offsetof(struct crash_record_task, name_length),
  CRASH_TASK_LOCAL_COUNT_OFFSET = offsetof(struct crash_record_task, local_count),
  CRASH_TASK_NAME_OFFSET = offsetof(struct crash_record_task, name),
  CRASH_TASK_NAME_SIZE = sizeof(((struct crash_record_task *)0)->name),
  CRASH_TASK_LOCALS_OFFSET = offsetof(struct crash_record_task, locals),
  CRASH_TASK_LOCAL_SIZE = sizeof(struct crash_record_task_local),
  CRASH_TASK_LOCAL_VALUE_LENGTH_OFFSET = offsetof(struct crash_record_task_local, value_length),
  CRASH_TASK_LOCAL_NAME_OFFSET = offsetof(struct crash_record_task_local, name),
  CRASH_TASK_LOCAL_NAME_SIZE = sizeof(((struct crash_record_task_local *)0)->name),
  CRASH_TASK_LOCAL_VALUE_OFFSET = offsetof(struct crash_record_task_local, value),
  CRASH_TASK_LOCAL_VALUE_SIZE = sizeof(((struct crash_record_task_local *)0)->value),

  CRASH_RUN_SIZE = sizeof(struct crash_record_run),
  CRASH_RUN_END_OFFSET = offsetof(struct crash_record_run, end),
  CRASH_RUN_EXIT_STATUS_OFFSET = offsetof(struct crash_record_run, exit_status),
  CRASH_RUN_END_FLAGS_OFFSET = offsetof(struct crash_record_run, end_flags),
  CRASH_RUN_END_SIGNAL_OFFSET = offsetof(struct crash_record_run, end_signal),
  CRASH_RUN_END_CODE_OFFSET = offsetof(struct crash_record_run, end_code),
  CRASH_RUN_SENDER_PID_OFFSET = offsetof(struct crash_record_run, sender_pid),
  CRASH_RUN_SENDER_UID_OFFSET = offsetof(struct crash_record_run, sender_uid),
  CRASH_RUN_END_REALTIME_OFFSET = offsetof(struct crash_record_run, end_realtime_ns),
  CRASH_RUN_MACHINE_OOM_KILLS_OFFSET = offsetof(struct crash_record_run, machine_oom_kills),
  CRASH_RUN_HAS_MEMORY_GROUPS_OFFSET = offsetof(struct crash_record_run, has_memory_groups),
  CRASH_RUN_MEMORY_GROUP_COUNT_OFFSET = offsetof(struct crash_record_run, memory_group_count),
  CRASH_RUN_OF_RUN_OFFSET = offsetof(struct crash_record_run, of_run),
  CRASH_RUN_REALTIME_OFFSET = offsetof(struct crash_record_run, realtime_ns),
  CRASH_RUN_STOPPED_OFFSET = offsetof(struct crash_record_run, stopped_ns),
  CRASH_RUN_SILENT_OFFSET = offsetof(struct crash_record_run, silent_ns),
  CRASH_RUN_SAMPLES_OFFSET = offsetof(struct crash_record_run, samples),
  CRASH_RUN_THREAD_OFFSET = offsetof(struct crash_record_run, thread),
  CRASH_RUN_WATCH_LENGTH_OFFSET = offsetof(struct crash_record_run, watch_length),
  CRASH_RUN_WATCH_OFFSET = offsetof(struct crash_record_run, watch),
  CRASH_RUN_WATCH_SIZE = sizeof(((struct crash_record_run *)0)->watch),
  CRASH_RUN_MEMORY_GROUPS_OFFSET = offsetof(struct crash_record_run, memory_groups),

  CRASH_MEMORY_GROUP_SIZE = sizeof(struct crash_record_memory_group),
  CRASH_MEMORY_GROUP_OOM_KILLS_OFFSET = offsetof(struct crash_record_memory_group, oom_kills),
  CRASH_MEMORY_GROUP_VERSION_OFFSET = offsetof(struct crash_record_memory_group, version),
  CRASH_MEMORY_GROUP_PATH_LENGTH_OFFSET = offsetof(struct crash_record_memory_group, path_length),
  CRASH_MEMORY_GROUP_PATH_OFFSET = offsetof(struct crash_record_memory_group, path),
  CRASH_MEMORY_GROUP_PATH_SIZE = sizeof(((struct crash_record_memory_group *)0)->path),

  CRASH_IMAGE_BUILD_ID_OFFSET = offsetof(struct crash_record_image, build_id),
};
_Static_assert(offsetof(struct crash_record_text64, bytes) == offsetof(struct crash_record_text256, bytes),
               "texts of every size have one head");

#endif
